import CSecp256k1

/// A point on secp256k1.
public struct PublicKey: Hashable, Sendable, CustomStringConvertible {
    /// Length of ``uncompressed`` in bytes.
    public static let uncompressedByteCount = 65
    /// Length of ``compressed`` in bytes.
    public static let compressedByteCount = 33

    /// 0x04 ‖ X ‖ Y.
    public let uncompressed: [UInt8]
    /// libsecp256k1's own form, parsed once.
    let point: secp256k1_pubkey

    /// From 65 bytes that begin with 0x04 or 33 that begin with 0x02 or 0x03.
    ///
    /// - Throws: ``CryptoError/invalidKey``
    public init(parsing bytes: some Collection<UInt8>) throws(CryptoError) {
        let bytes = Array(bytes)
        switch (bytes.count, bytes.first) {
        case (Self.uncompressedByteCount, 4), (Self.compressedByteCount, 2), (Self.compressedByteCount, 3): break
        default: throw .invalidKey
        }
        var point = secp256k1_pubkey()
        guard secp256k1_ec_pubkey_parse(Secp256k1.context, &point, bytes, bytes.count) == 1 else { throw .invalidKey }
        self.init(point: point, uncompressed: bytes.count == Self.uncompressedByteCount ? bytes : nil)
    }

    /// From the digits of either form, with or without 0x.
    ///
    /// - Throws: ``CryptoError/invalidKey``
    public init(hex: some StringProtocol) throws(CryptoError) {
        guard let bytes = bytes(hex: hex.hasPrefix("0x") ? hex.dropFirst(2) : hex[...]) else { throw .invalidKey }
        try self.init(parsing: bytes)
    }

    init(point: secp256k1_pubkey, uncompressed: [UInt8]? = nil) {
        self.point = point
        self.uncompressed = uncompressed ?? Self.serialized(point)
    }

    private static func serialized(_ point: secp256k1_pubkey) -> [UInt8] {
        var point = point
        return [UInt8](unsafeUninitializedCapacity: uncompressedByteCount) { buffer, initialized in
            initialized = uncompressedByteCount
            guard let start = buffer.baseAddress else { return }
            secp256k1_ec_pubkey_serialize(Secp256k1.context, start, &initialized, &point, UInt32(SECP256K1_EC_UNCOMPRESSED))
        }
    }

    /// (0x02 or 0x03 by the parity of Y) ‖ X.
    public var compressed: [UInt8] {
        [2 | uncompressed[64] & 1] + uncompressed[1...32]
    }

    /// The X coordinate, 32 bytes big-endian.
    public var x: ArraySlice<UInt8> { uncompressed[1...32] }

    /// 130 digits, without 0x.
    public var hex: String { hexString(uncompressed) }
    /// Same as ``hex``.
    public var description: String { hex }

    /// Compares the encoded points: the representation of `secp256k1_pubkey` is private to the library.
    public static func == (left: PublicKey, right: PublicKey) -> Bool { left.uncompressed == right.uncompressed }
    /// Hashes all bytes at once: an array hashes its elements one by one.
    public func hash(into hasher: inout Hasher) { uncompressed.withUnsafeBytes { hasher.combine(bytes: $0) } }
}
