import CZeroMQ
import Core

/// What a connection's TCP socket has received, less what came out of libzmq: what libzmq keeps of it.
struct UnreceivedBytes {
    /// Heartbeats come without being messages: some 5 bytes a second, and with a server's own some 10.
    private static let heartbeatRate = 32.0

    /// libzmq's socket. It may be closed, and the number in use for another, before that is known here: the connection has ended then.
    private var descriptor: Int32?
    private var connectedAt = Instant(sinceEpoch: .zero)
    private var receivedCount = 0

    mutating func connected(_ descriptor: Int32, at now: Instant) {
        self.descriptor = descriptor
        connectedAt = now
    }

    /// A message came out.
    mutating func received(_ byteCount: Int) {
        receivedCount += byteCount
    }

    /// nil when it is not a TCP connection.
    func count(at now: Instant) -> Int? {
        guard let descriptor else { return nil }
        let total = Int(clamping: czeromq_received_byte_count(descriptor))
        guard total >= 0 else { return nil }
        return total - receivedCount - Int((now - connectedAt) / .seconds(1) * Self.heartbeatRate)
    }
}
