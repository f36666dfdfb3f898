public import WakuCrypto

/// A version 1 Waku payload before encryption, RFC 26.
///
///     flags(1) ‖ length(1–3, little-endian) ‖ data ‖ padding ‖ signature(65)
///
/// Flags: bits 0–1 are the number of length bytes, bit 2 marks a signed frame. The frame is padded to the next multiple of 256 bytes, an
/// exact multiple by 256 more; receivers ignore the padding.
public struct PayloadFrame: Sendable {
    static let blockByteCount = 256
    private static let lengthByteCountMask: UInt8 = 0b011
    private static let signedFlag: UInt8 = 0b100

    /// The content, without length, padding and signature.
    public let data: [UInt8]
    /// nil for an unsigned frame. Only its form is checked: whether a key can be recovered from it is found by ``signer()``.
    public let signature: Signature?
    /// The bytes that the signature covers: all before it.
    private let signed: ArraySlice<UInt8>

    /// Parses a decrypted payload.
    ///
    /// - Throws: ``PayloadError/truncated``, ``PayloadError/badSignature``
    public init(parsing bytes: [UInt8]) throws(PayloadError) {
        guard let flags = bytes.first else { throw .truncated }
        let lengthByteCount = Int(flags & Self.lengthByteCountMask)
        let isSigned = flags & Self.signedFlag != 0
        let end = bytes.count - (isSigned ? Signature.byteCount : 0)
        let start = 1 + lengthByteCount
        guard lengthByteCount > 0, start <= end else { throw .truncated }
        let length = bytes[1..<start].reversed().reduce(0) { $0 << 8 | Int($1) }
        guard length <= end - start else { throw .truncated }
        do { signature = isSigned ? try Signature(parsing: bytes[end...]) : nil } catch { throw .badSignature }
        signed = bytes[..<end]
        data = Array(bytes[start..<start + length])
    }

    /// Recovers the signer's key, at a third of the cost of opening a message; nil for an unsigned frame.
    ///
    /// - Throws: ``PayloadError/badSignature``
    public func signer() throws(PayloadError) -> PublicKey? {
        do { return try signature?.signer(of: Keccak256.hash(signed)) } catch { throw .badSignature }
    }

    /// Encodes `data` with random padding and a signature.
    ///
    /// - Precondition: `data` is shorter than 16 MiB, the limit of three length bytes.
    public static func encode(_ data: [UInt8], signedBy key: PrivateKey) -> [UInt8] {
        encode(data, signedBy: key, padding: randomBytes)
    }

    static func encode(_ data: [UInt8], signedBy key: PrivateKey?, padding: (Int) -> [UInt8]) -> [UInt8] {
        let lengthByteCount = max(1, (Int.bitWidth - data.count.leadingZeroBitCount + 7) / 8)
        precondition(lengthByteCount <= 3)
        let signatureByteCount = key == nil ? 0 : Signature.byteCount
        let used = 1 + lengthByteCount + data.count + signatureByteCount
        let paddingByteCount = blockByteCount - used % blockByteCount
        var bytes: [UInt8] = []
        bytes.reserveCapacity(used + paddingByteCount)
        bytes.append(UInt8(lengthByteCount) | (key == nil ? 0 : signedFlag))
        for shift in 0..<lengthByteCount {
            bytes.append(UInt8(truncatingIfNeeded: data.count >> (8 * shift)))
        }
        bytes += data
        bytes += padding(paddingByteCount)
        if let key {
            bytes += Signature(of: Keccak256.hash(bytes), by: key).bytes
        }
        return bytes
    }
}

/// Why a Waku payload cannot be parsed.
public enum PayloadError: Error, Hashable, Sendable {
    /// The frame is shorter than its flags and length require.
    case truncated
    /// The signature is malformed, or no key can be recovered from it.
    case badSignature
}
