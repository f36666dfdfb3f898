public import WakuCrypto

/// SHAKE-256 of a compressed public key, 64 bytes: identifies a registrant in push messages without disclosing the key.
public struct KeyHash: Hashable, Sendable {
    /// Length of a hash in bytes.
    public static let byteCount = 64
    /// SHAKE-256 squeezed to 64 bytes.
    public let bytes: [UInt8]

    /// nil unless there are 64 bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// Hashes the 33-byte compressed form of the key.
    public init(of key: PublicKey) {
        bytes = Shake256.hash64(key.compressed)
    }

    /// 128 lower-case digits without `0x`: in this form it is the string of a query topic.
    public var hex: String { hexString(bytes) }
}

/// Identifies a device of a registrant. Compared by its UTF-8 bytes, not by canonical equivalence.
public struct InstallationID: Hashable, Sendable, CustomStringConvertible {
    /// Maximum length in a registration.
    public static let maximumByteCount = 128
    /// UTF-8 as received. May be longer than ``maximumByteCount``, which only registrations are checked for.
    public let bytes: [UInt8]

    /// - Parameter bytes: Any length. Must be UTF-8 when it is sent in a message.
    public init(bytes: [UInt8]) { self.bytes = bytes }
    /// The UTF-8 of a string, without Unicode normalization.
    public init(_ string: String) { bytes = Array(string.utf8) }

    /// The bytes as UTF-8, with U+FFFD in place of invalid sequences.
    public var string: String { String(decoding: bytes, as: UTF8.self) }
    /// Same as ``string``: an installation id is not a secret.
    public var description: String { string }
}

/// Tells apart the registrations with the identities of one node: the first 8 bytes of SHA-256 of the identity's compressed public key. Registrations
/// with the identity that a database served first have none.
package struct ServerMark: Hashable, Sendable {
    package static let byteCount = 8
    package let bytes: [UInt8]

    package init(of identity: PublicKey) {
        bytes = Array(SHA256.hash(identity.compressed).prefix(Self.byteCount))
    }

    fileprivate init(bytes: [UInt8]) { self.bytes = bytes }

    /// nil unless there are 8 bytes.
    init?(stored: ArraySlice<UInt8>) {
        guard stored.count == Self.byteCount else { return nil }
        bytes = Array(stored)
    }

    /// 16 lower-case digits.
    package var hex: String { hexString(bytes) }

    /// Begins the stored form of an installation id that has a mark; UTF-8 has no such byte.
    fileprivate static let lead: UInt8 = 0xFF
    /// The prefix of the stored forms of all installation ids with this mark.
    package var storedPrefix: [UInt8] { [Self.lead] + bytes }
}

/// The key of a stored registration and its version.
public struct RegistrationKey: Hashable, Sendable {
    /// The registrant.
    public let keyHash: KeyHash
    /// The registrant's device. Unique only among the devices of one registrant.
    public let installationID: InstallationID
    /// The identity of the node with which it is registered.
    package let server: ServerMark?

    /// - Parameters:
    ///   - keyHash: The hash of the key that signed the registration.
    ///   - installationID: The device as named in the registration.
    public init(keyHash: KeyHash, installationID: InstallationID) {
        self.init(keyHash: keyHash, installationID: installationID, server: nil)
    }

    package init(keyHash: KeyHash, installationID: InstallationID, server: ServerMark?) {
        self.keyHash = keyHash
        self.installationID = installationID
        self.server = server
    }

    /// - Parameter stored: see ``storedInstallation``.
    package init(keyHash: KeyHash, storedInstallation stored: [UInt8]) {
        let prefixCount = 1 + ServerMark.byteCount
        let isMarked = stored.first == ServerMark.lead && stored.count > prefixCount
        self.init(
            keyHash: keyHash, installationID: InstallationID(bytes: isMarked ? Array(stored[prefixCount...]) : stored),
            server: isMarked ? ServerMark(bytes: Array(stored[1..<prefixCount])) : nil)
    }

    /// The installation id in the database: with a mark FF ‖ mark(8) ‖ id, else the id. The id is UTF-8, so it does not begin with FF.
    package var storedInstallation: [UInt8] { (server?.storedPrefix ?? []) + installationID.bytes }
}
