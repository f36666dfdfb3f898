import CZeroMQ
import Core

/// Estimates the bytes of a connection held by libzmq: the bytes received by its TCP socket, minus those of the messages read from libzmq.
struct UnreceivedBytes {
    /// Allowance for heartbeats, which are not messages: about 5 bytes per second, or 10 if the server sends its own.
    private static let heartbeatRate = 32.0

    /// libzmq's TCP socket. libzmq may close it, and the system reuse its number, before the end of the connection is noticed here.
    private var descriptor: Int32?
    private var connectedAt = Instant(sinceEpoch: .zero)
    private var receivedCount = 0

    mutating func connected(_ descriptor: Int32, at now: Instant) {
        self.descriptor = descriptor
        connectedAt = now
    }

    /// Counts a message read from libzmq.
    mutating func received(_ byteCount: Int) {
        receivedCount += byteCount
    }

    /// The bytes held by libzmq; nil if this is not a TCP connection.
    func count(at now: Instant) -> Int? {
        guard let descriptor else { return nil }
        let total = Int(clamping: czeromq_received_byte_count(descriptor))
        guard total >= 0 else { return nil }
        return total - receivedCount - Int((now - connectedAt) / .seconds(1) * Self.heartbeatRate)
    }
}
