import CZeroMQ
import Core

/// Estimates the bytes of a connection held by libzmq: the bytes read from its TCP socket, minus those of the messages read from libzmq.
struct UnreceivedBytes {
    /// Allowance for heartbeats, which are not messages: about 5 bytes per second, or 10 if the server sends its own.
    private static let heartbeatRate = 32.0

    /// libzmq's TCP socket. libzmq may close it, and the system reuse its number, before the end of the connection is noticed here.
    private var descriptor: Int32?
    private var receivedCount = 0
    /// When libzmq held nothing for the last time. The allowance for heartbeats begins here.
    private var emptyAt = Instant(sinceEpoch: .zero)

    mutating func connected(_ descriptor: Int32, at now: Instant) {
        self.descriptor = descriptor
        emptyAt = now
    }

    /// Counts a message read from libzmq.
    mutating func received(_ byteCount: Int) {
        receivedCount += byteCount
    }

    /// The bytes held by libzmq; nil if this is not a TCP connection.
    mutating func count(at now: Instant) -> Int? {
        guard let descriptor else { return nil }
        let total = Int(clamping: czeromq_read_byte_count(descriptor))
        return total < 0 ? nil : count(ofTotal: total, at: now)
    }

    /// - Parameter total: the bytes read from the TCP socket.
    mutating func count(ofTotal total: Int, at now: Instant) -> Int {
        let count = total - receivedCount - Int((now - emptyAt) / .seconds(1) * Self.heartbeatRate)
        guard count <= 0 else { return count }
        // An estimate that was too high, or an allowance that was not used, is no credit for a later message.
        (receivedCount, emptyAt) = (total, now)
        return 0
    }
}

/// Which connections hold too many unreceived bytes.
struct UnreceivedLimits: Hashable, Sendable {
    /// Limit of a connection.
    var each: Int
    /// Bytes of each connection that do not count towards ``common``: more than usually wait while the store is slow.
    var free = 1 << 20
    /// Limit of all connections together, each without ``free`` bytes.
    var common = 64 << 20

    /// - Parameter counts: the unreceived bytes of connections.
    /// - Returns: the connections to close: those over their limit, and then the largest ones until the others are within the common limit.
    func excess(_ counts: [UInt64: Int]) -> [UInt64] {
        let ordered = counts.filter { $0.value > min(free, each) }.sorted { ($0.value, $0.key) > ($1.value, $1.key) }
        var rest = ordered.reduce(0) { $0 + max($1.value - free, 0) }
        return ordered.prefix { _, count in
            defer { rest -= max(count - free, 0) }
            return count > each || rest > common
        }.map(\.key)
    }
}
