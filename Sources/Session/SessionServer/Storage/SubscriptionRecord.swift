package import SessionProtocol
import Storage
package import WakuCrypto

/// The sealed content of a stored subscription.
///
///     format(1) = 1 ‖ account(33) ‖ flags(1) ‖ signature(64) ‖ sig_ts(8) ‖ enc_key(32)
///     ‖ session key(32)? ‖ subaccount token(36) signature(64) | subkey tag(32)? ‖ count(2) namespaces(2 each) ‖ token (UTF-8)
///
/// Integers are big-endian. Flags: bit 0: data is wanted, 1: has a session key, 2: has a subaccount, 3: has a subkey tag.
package struct SubscriptionRecord: Sendable {
    private static let format: UInt8 = 1
    /// The byte range of the account.
    private static let accountRange = 1..<1 + AccountID.byteCount

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let wantsData = Flags(rawValue: 1)
        static let sessionKey = Flags(rawValue: 2)
        static let subaccount = Flags(rawValue: 4)
        static let subkey = Flags(rawValue: 8)
    }

    package let authority: SignedAuthority
    package let namespaces: [Int16]
    package let wantsData: Bool
    package let token: Confidential<String>
    package let encryptionKey: SymmetricKey

    package init(_ form: SubscriptionForm) {
        authority = form.authority
        namespaces = form.namespaces
        wantsData = form.wantsData
        token = form.device.token
        encryptionKey = form.encryptionKey
    }

    package var monitorEntry: MonitorEntry { MonitorEntry(authority, namespaces: namespaces, wantsData: wantsData) }

    // MARK: Reading

    /// Reads only the account.
    static func account(in bytes: [UInt8]) throws(UnexpectedValue) -> AccountID {
        guard bytes.count >= accountRange.upperBound, bytes[0] == format, let account = AccountID(bytes[accountRange]) else {
            throw UnexpectedValue()
        }
        return account
    }

    /// - Throws: `UnexpectedValue`
    package init(parsing bytes: [UInt8]) throws {
        var position = 0
        func take(_ count: Int) throws -> ArraySlice<UInt8> {
            guard bytes.count - position >= count else { throw UnexpectedValue() }
            defer { position += count }
            return bytes[position..<position + count]
        }
        guard try take(1).first == Self.format, let account = AccountID(try take(AccountID.byteCount)) else { throw UnexpectedValue() }
        let flags = Flags(rawValue: try take(1).first ?? 0)
        let signature = Confidential(Array(try take(Ed25519PublicKey.signatureByteCount)))
        let signedAt = try take(8).reduce(0) { $0 << 8 | Int64($1) }
        guard let key = SymmetricKey(bytes: Array(try take(SymmetricKey.byteCount))) else { throw UnexpectedValue() }
        encryptionKey = key
        let sessionKey =
            flags.contains(.sessionKey) ? try Ed25519PublicKey(parsing: Array(try take(Ed25519PublicKey.byteCount))) : nil
        var delegation = Delegation.none
        if flags.contains(.subaccount) {
            guard let token = SubaccountToken(Array(try take(SubaccountToken.byteCount))) else { throw UnexpectedValue() }
            delegation = .subaccount(token, signature: Confidential(Array(try take(Ed25519PublicKey.signatureByteCount))))
        } else if flags.contains(.subkey) {
            delegation = .subkey(tag: Array(try take(32)))
        }
        authority = SignedAuthority(
            account: account, sessionKey: sessionKey, delegation: delegation, signedAt: signedAt, signature: signature)
        let count = try take(2).reduce(0) { $0 << 8 | Int($1) }
        let packed = try take(2 * count)
        namespaces = stride(from: packed.startIndex, to: packed.endIndex, by: 2).map {
            Int16(bitPattern: UInt16(packed[$0]) << 8 | UInt16(packed[$0 + 1]))
        }
        wantsData = flags.contains(.wantsData)
        token = Confidential(String(decoding: bytes[position...], as: UTF8.self))
    }

    // MARK: Writing

    /// - Precondition: at most 65,535 namespaces, which is more than fit into a request's body.
    package func encoded() -> [UInt8] {
        var flags: Flags = wantsData ? .wantsData : []
        var parts: [UInt8] = []
        if let key = authority.sessionKey {
            flags.insert(.sessionKey)
            parts += key.bytes
        }
        switch authority.delegation {
        case .none: break
        case .subaccount(let token, let signature):
            flags.insert(.subaccount)
            parts += token.bytes + signature.value
        case .subkey(let tag):
            flags.insert(.subkey)
            parts += tag
        }
        var bytes: [UInt8] = [Self.format] + authority.account.bytes
        bytes.append(flags.rawValue)
        bytes += authority.signature.value
        bytes += Self.bigEndian(authority.signedAt)
        encryptionKey.secret.withBytes { bytes += $0 }
        bytes += parts
        bytes += Self.bigEndian(UInt16(namespaces.count))
        for namespace in namespaces { bytes += Self.bigEndian(namespace) }
        bytes += token.value.utf8
        return bytes
    }

    private static func bigEndian(_ integer: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: integer.bigEndian, Array.init)
    }
}
