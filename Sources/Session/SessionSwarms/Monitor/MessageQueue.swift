import DequeModule
import SessionProtocol

/// Accepted messages until the receiver takes them. Connections have their turns, so that a server that sends a lot delays only itself: it is not
/// read while it has too many here.
package struct MessageQueue: Sendable {
    struct Limits: Hashable, Sendable {
        /// Of a connection: with more it is paused.
        var connectionByteCount = 1 << 20
        /// Of all connections: with more, those that send are paused.
        var totalByteCount = 32 << 20
    }

    /// Messages that the receiver gets at once.
    package static let maximumBatchCount = 512
    /// What a message takes besides its data, at most.
    static let overhead = 512

    private struct Line: Sendable {
        var messages: Deque<ReportedMessage> = []
        var byteCount = 0
        var isPaused = false
    }

    private let limits: Limits
    private var lines: [ConnectionNumber: Line] = [:]
    /// Connections with messages, in the order of their turns.
    private var turns: Deque<ConnectionNumber> = []
    private(set) var byteCount = 0
    private var pausedCount = 0

    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    var isEmpty: Bool { turns.isEmpty }

    /// - Returns: Whether the connection has to be paused until ``next()`` names it.
    mutating func append(_ message: ReportedMessage, from connection: ConnectionNumber) -> Bool {
        let size = Self.byteCount(of: message)
        byteCount += size
        if lines[connection]?.messages.isEmpty ?? true { turns.append(connection) }
        lines[connection, default: Line()].messages.append(message)
        lines[connection, default: Line()].byteCount += size
        guard let line = lines[connection], !line.isPaused else { return true }
        guard line.byteCount > limits.connectionByteCount || byteCount > limits.totalByteCount else { return false }
        lines[connection]?.isPaused = true
        pausedCount += 1
        return true
    }

    func isPaused(_ connection: ConnectionNumber) -> Bool { lines[connection]?.isPaused ?? false }

    /// The connection has ended. What it reported is still handed over.
    mutating func forgetPause(of connection: ConnectionNumber) {
        guard lines[connection]?.isPaused == true else { return }
        lines[connection]?.isPaused = false
        pausedCount -= 1
        if lines[connection]?.messages.isEmpty == true { lines[connection] = nil }
    }

    /// The next messages, one of each connection in turn, and the connections that are read again from here on.
    mutating func next() -> (messages: [ReportedMessage], resumed: [ConnectionNumber]) {
        var (messages, touched): ([ReportedMessage], Set<ConnectionNumber>) = ([], [])
        while messages.count < Self.maximumBatchCount, let connection = turns.popFirst() {
            guard let message = lines[connection]?.messages.popFirst() else { continue }
            let size = Self.byteCount(of: message)
            byteCount -= size
            lines[connection]?.byteCount -= size
            messages.append(message)
            touched.insert(connection)
            if lines[connection]?.messages.isEmpty == false { turns.append(connection) }
        }
        let resumed = resumable()
        for connection in resumed { forgetPause(of: connection) }
        for connection in touched where lines[connection]?.messages.isEmpty == true && lines[connection]?.isPaused == false {
            lines[connection] = nil
        }
        return (messages, resumed)
    }

    /// At half of the limits, so that a connection is not paused and resumed with every message.
    private func resumable() -> [ConnectionNumber] {
        guard pausedCount > 0, byteCount <= limits.totalByteCount / 2 else { return [] }
        return lines.filter { $0.value.isPaused && $0.value.byteCount <= limits.connectionByteCount / 2 }.keys
            .sorted { $0.rawValue < $1.rawValue }
    }

    private static func byteCount(of message: ReportedMessage) -> Int { (message.message.data?.count ?? 0) + overhead }
}
