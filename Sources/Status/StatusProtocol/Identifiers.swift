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

/// The key of a stored registration and its version.
public struct RegistrationKey: Hashable, Sendable {
    /// The registrant.
    public let keyHash: KeyHash
    /// The registrant's device. Unique only among the devices of one registrant.
    public let installationID: InstallationID

    /// - Parameters:
    ///   - keyHash: The hash of the key that signed the registration.
    ///   - installationID: The device as named in the registration.
    public init(keyHash: KeyHash, installationID: InstallationID) {
        self.keyHash = keyHash
        self.installationID = installationID
    }
}
