import NIOCore
import WakuCrypto

/// Encryption after the handshake.
///
///     frame = length(2, big-endian) ‖ ciphertext and tag (at most 65,535 bytes)
///
/// The cipher reads from one buffer and writes into another without further copies.
struct NoiseTransport {
    static let frameLimit = 65_535
    static let plainLimit = frameLimit - ChaCha20Poly1305.tagByteCount

    private let sealing: ChaCha20Poly1305
    private let opening: ChaCha20Poly1305
    private var sent: UInt64 = 0
    private var received: UInt64 = 0

    init(send: SecretBytes, receive: SecretBytes) {
        sealing = ChaCha20Poly1305(key: send, direction: .seal)
        opening = ChaCha20Poly1305(key: receive, direction: .open)
    }

    /// Encrypts all of `plain` into as few frames as possible.
    mutating func seal(_ plain: inout ByteBuffer) -> ByteBuffer {
        let frameCount = (plain.readableBytes + Self.plainLimit - 1) / Self.plainLimit
        var output = ByteBuffer()
        output.reserveCapacity(plain.readableBytes + frameCount * (2 + ChaCha20Poly1305.tagByteCount))
        while plain.readableBytes > 0 {
            let count = min(plain.readableBytes, Self.plainLimit)
            let sealedCount = count + ChaCha20Poly1305.tagByteCount
            output.writeInteger(UInt16(sealedCount))
            output.writeWithUnsafeMutableBytes(minimumWritableBytes: sealedCount) { target in
                plain.withUnsafeReadableBytes { source in
                    guard let start = target.baseAddress else { return }
                    sealing.start(sent)
                    sealing.update(UnsafeRawBufferPointer(rebasing: source[..<count]), into: start)
                    sealing.finishSealing(tag: start + count)
                }
                return sealedCount
            }
            plain.moveReaderIndex(forwardBy: count)
            sent += 1
        }
        return output
    }

    /// Decrypts and removes all complete frames from the front of `input`.
    ///
    /// - Returns: Their plaintext, concatenated; empty if there is no complete frame.
    /// - Throws: ``NoiseError/truncated``, ``NoiseError/authenticationFailed``: the connection must be closed then.
    mutating func open(_ input: inout ByteBuffer) throws(NoiseError) -> ByteBuffer {
        var output = ByteBuffer()
        while let length = input.getInteger(at: input.readerIndex, as: UInt16.self), input.readableBytes >= 2 + Int(length) {
            let count = Int(length) - ChaCha20Poly1305.tagByteCount
            guard count >= 0 else { throw .truncated }
            if output.capacity == 0 { output.reserveCapacity(input.readableBytes) }
            input.moveReaderIndex(forwardBy: 2)
            var isAuthentic = false
            output.writeWithUnsafeMutableBytes(minimumWritableBytes: max(count, 1)) { target in
                input.withUnsafeReadableBytes { source in
                    guard let start = target.baseAddress, let tag = source.baseAddress.map({ $0 + count }) else { return }
                    opening.start(received)
                    opening.update(UnsafeRawBufferPointer(rebasing: source[..<count]), into: start)
                    isAuthentic = opening.finishOpening(tag: tag)
                }
                return isAuthentic ? count : 0
            }
            guard isAuthentic else { throw .authenticationFailed }
            input.moveReaderIndex(forwardBy: Int(length))
            received += 1
        }
        return output
    }
}
