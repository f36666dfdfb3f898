import NIOCore
import WakuCrypto

/// The ping protocol, `/ipfs/ping/1.0.0`: the responder echoes 32 bytes, any number of times on one stream.
enum Ping {
    static let id = "/ipfs/ping/1.0.0"
    static let byteCount = 32
    static let limit = TimeAmount.seconds(10)
    /// Timeout for streams that the peer does not finish.
    private static let idleLimit = TimeAmount.minutes(10)

    static func serve(_ stream: PeerStream) async throws {
        stream.endAfter(idleLimit)
        var received = ByteBuffer()
        while var bytes = try await stream.read() {
            received.writeBuffer(&bytes)
            guard let whole = received.readSlice(length: received.readableBytes / byteCount * byteCount), whole.readableBytes > 0 else {
                continue
            }
            try await stream.write(whole)
            received.discardReadBytes()
        }
    }

    /// Measures the round trip time.
    static func measure(_ connection: Connection) async throws -> Duration {
        let stream = try await connection.openStream([id], within: limit)
        defer { stream.close() }
        stream.endAfter(limit)
        let bytes = ByteBuffer(bytes: randomBytes(byteCount))
        let start = ContinuousClock.now
        try await stream.write(bytes)
        var received = ByteBuffer()
        while received.readableBytes < byteCount {
            guard var more = try await stream.read() else { throw ConnectionError.closedByPeer }
            received.writeBuffer(&more)
        }
        guard received == bytes else { throw ConnectionError.protocolViolation("ping: other bytes came back") }
        return start.duration(to: .now)
    }
}
