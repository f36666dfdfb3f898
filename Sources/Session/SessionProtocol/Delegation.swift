package import WakuCrypto

/// The key that signs the requests of an account.
package enum Delegation: Hashable, Sendable {
    /// The account's own key.
    case none
    /// The key in a subaccount's token, the deployed form.
    case subaccount(SubaccountToken, signature: Confidential<[UInt8]>)
    /// A key derived with a 32-byte tag, the published form. Current storage servers have no field for it.
    case subkey(tag: [UInt8])
}

/// An account's authorization of another key: 36 bytes.
///
///     network prefix(1) ‖ flags(1) ‖ 0 ‖ 0 ‖ Ed25519 key(32)
package struct SubaccountToken: Hashable, Sendable {
    package static let byteCount = 36

    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let read = Flags(rawValue: 1)
        package static let write = Flags(rawValue: 2)
        package static let delete = Flags(rawValue: 4)
        /// The token's network prefix may differ from the account's.
        package static let anyPrefix = Flags(rawValue: 8)
    }

    package let bytes: [UInt8]

    /// nil unless there are 36 bytes.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    package var prefix: UInt8 { bytes[0] }
    package var flags: Flags { Flags(rawValue: bytes[1]) }
    package var hasZeroPadding: Bool { bytes[2] == 0 && bytes[3] == 0 }
    /// The key that signs for the account. Not checked to be a valid point until a signature is verified.
    package var key: Ed25519PublicKey? { try? Ed25519PublicKey(parsing: bytes[4...]) }
}
