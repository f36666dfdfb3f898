public import WakuCrypto

/// SHAKE-256 of a compressed public key, 64 bytes: how push messages name a registrant without showing the key.
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

/// Names one device of a registrant. Compared by its UTF-8 bytes, not by what Unicode holds for equal.
public struct InstallationID: Hashable, Sendable, CustomStringConvertible {
    /// The longest one that a registration may have.
    public static let maximumByteCount = 128
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }
    public init(_ string: String) { bytes = Array(string.utf8) }

    public var string: String { String(decoding: bytes, as: UTF8.self) }
    public var description: String { string }
}

/// What a registration is stored and versioned under.
public struct RegistrationKey: Hashable, Sendable {
    public let keyHash: KeyHash
    public let installationID: InstallationID

    public init(keyHash: KeyHash, installationID: InstallationID) {
        self.keyHash = keyHash
        self.installationID = installationID
    }
}
