/// Accepted messages waiting for the receiver. Connections take turns, and so do the accounts of a connection. A message costs as many places as it
/// causes notifications, so a server or an account with many messages or devices delays only itself. A connection is paused while it has too many
/// bytes in the queue.
package struct MessageQueue: Sendable {
    struct Limits: Hashable, Sendable {
        /// Limit of a connection. Over it, the connection is paused.
        var connectionByteCount = 1 << 20
        /// Limit of all connections. Over it, each connection that sends is paused.
        var totalByteCount = 32 << 20
    }

    /// Maximum number of messages passed to the receiver at once.
    package static let maximumBatchCount = 512
    /// No further message is passed along once the messages cause this many notifications: a notification being stored takes about 6 KiB.
    package static let maximumBatchFanOut = 1_024
    /// Upper bound of a message's memory besides its data, in bytes.
    static let overhead = 512
    /// The number of notifications per turn.
    private static let quantum = 8
    /// The cost of a message is its number of notifications, up to this limit.
    private static let fanOutLimit = 128

    private struct Line: Sendable {
        var messages = DeficitTurns<AccountID, ReportedMessage>(quantum: quantum, costLimit: fanOutLimit)
        var byteCount = 0
        var isPaused = false
    }

    private let limits: Limits
    private var lines: [ConnectionNumber: Line] = [:]
    /// An element for each message in ``lines``, without the message.
    private var turns = DeficitTurns<ConnectionNumber, Void>(quantum: quantum, costLimit: fanOutLimit)
    private(set) var byteCount = 0
    private var pausedCount = 0

    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    var isEmpty: Bool { turns.isEmpty }

    /// - Parameter deviceCount: the devices of its account, each of which may get a notification.
    /// - Returns: Whether to pause the connection until ``next()`` returns it.
    mutating func append(_ message: ReportedMessage, from connection: ConnectionNumber, deviceCount: Int = 1) -> Bool {
        let size = Self.byteCount(of: message)
        byteCount += size
        turns.append((), cost: deviceCount, of: connection)
        lines[connection, default: Line()].messages.append(message, cost: deviceCount, of: message.message.account)
        lines[connection, default: Line()].byteCount += size
        guard let line = lines[connection], !line.isPaused else { return true }
        guard line.byteCount > limits.connectionByteCount || byteCount > limits.totalByteCount else { return false }
        lines[connection]?.isPaused = true
        pausedCount += 1
        return true
    }

    func isPaused(_ connection: ConnectionNumber) -> Bool { lines[connection]?.isPaused ?? false }

    /// Forgets the pause of a connection that has ended. Its messages stay in the queue.
    mutating func forgetPause(of connection: ConnectionNumber) {
        guard lines[connection]?.isPaused == true else { return }
        lines[connection]?.isPaused = false
        pausedCount -= 1
        if lines[connection]?.messages.isEmpty == true { lines[connection] = nil }
    }

    /// The next messages, from each connection in turn, and the connections to resume.
    mutating func next() -> (messages: [ReportedMessage], resumed: [ConnectionNumber]) {
        var (messages, touched): ([ReportedMessage], Set<ConnectionNumber>) = ([], [])
        var fanOut = 0
        while messages.count < Self.maximumBatchCount, fanOut < Self.maximumBatchFanOut, let turn = turns.popFirst() {
            guard let (_, message, cost) = lines[turn.payer]?.messages.popFirst() else { continue }
            let size = Self.byteCount(of: message)
            byteCount -= size
            lines[turn.payer]?.byteCount -= size
            fanOut += cost
            messages.append(message)
            touched.insert(turn.payer)
        }
        let resumed = resumable()
        for connection in resumed { forgetPause(of: connection) }
        for connection in touched where lines[connection]?.messages.isEmpty == true && lines[connection]?.isPaused == false {
            lines[connection] = nil
        }
        return (messages, resumed)
    }

    /// Paused connections are resumed at half of the limits, to avoid a pause with every message.
    private func resumable() -> [ConnectionNumber] {
        guard pausedCount > 0, byteCount <= limits.totalByteCount / 2 else { return [] }
        return lines.filter { $0.value.isPaused && $0.value.byteCount <= limits.connectionByteCount / 2 }.keys
            .sorted { $0.rawValue < $1.rawValue }
    }

    private static func byteCount(of message: ReportedMessage) -> Int { (message.message.data?.count ?? 0) + overhead }
}
