public import WakuCrypto

/// SHAKE-256 of a compressed public key, 64 bytes: identifies a registrant in push messages without disclosing the key.
public struct KeyHash: Hashable, Sendable {
    public static let byteCount = 64
    public let bytes: [UInt8]

    /// nil unless there are 64 bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    public init(of key: PublicKey) {
        bytes = Shake256.hash64(key.compressed)
    }

    public var hex: String { hexString(bytes) }
}

/// Identifies a device of a registrant. Compared by its UTF-8 bytes, not by canonical equivalence.
public struct InstallationID: Hashable, Sendable, CustomStringConvertible {
    /// Maximum length in a registration.
    public static let maximumByteCount = 128
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }
    public init(_ string: String) { bytes = Array(string.utf8) }

    public var string: String { String(decoding: bytes, as: UTF8.self) }
    public var description: String { string }
}

/// The key of a stored registration and its version.
public struct RegistrationKey: Hashable, Sendable {
    public let keyHash: KeyHash
    public let installationID: InstallationID

    public init(keyHash: KeyHash, installationID: InstallationID) {
        self.keyHash = keyHash
        self.installationID = installationID
    }
}
