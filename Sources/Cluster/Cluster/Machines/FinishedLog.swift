package import Core

/// Messages that this node has finished: handled without effect (dropped, limited, refused, or answered queries), or answered after their effect was
/// committed. Other nodes learn of them from rows, one every 500 ms:
///
///     node(8) · sequence(8) · prefixes(8 each, at most 4,096)          key: node, sequence
///
/// One list tells other nodes both that they need not take a message and that they need not answer it: a message that is claimed but not finished
/// lacks its answer, and one that is neither claimed nor finished was not taken. Marks in the claims' rows would cost an update for each message.
/// A message that is finished but not yet in a row when the node dies is handled again if it had no effect, and answered again if it had one.
package struct FinishedLog: Sendable {
    package struct Row: Hashable, Sendable {
        package let node: NodeID
        package let sequence: Int64
        package let prefixes: [UInt64]
        /// The node's own rows up to this sequence number are deleted in the same transaction.
        package let deleteUpTo: Int64
    }

    private let node: NodeID
    private let configuration: ClusterConfiguration
    private var waiting: [UInt64] = []
    private var unwritten: Row?
    private var isWriting = false
    private var lastWrite: Instant?
    private var written: [(sequence: Int64, at: Instant)] = []
    private var lastSequence: Int64 = 0
    private var deleted: Int64 = 0
    /// The number of messages left out because too many waited.
    package private(set) var droppedCount = 0

    package init(_ node: NodeID, configuration: ClusterConfiguration) {
        self.node = node
        self.configuration = configuration
    }

    package mutating func add(_ key: MessageKey) {
        waiting.append(key.prefix)
        if waiting.count > configuration.finishedBacklogLimit {
            let surplus = waiting.count - configuration.finishedBacklogLimit / 2
            waiting.removeFirst(surplus)
            droppedCount += surplus
        }
    }

    /// When ``row(at:)`` has a row to write; nil while no message waits, and while a row is being written.
    package var nextWakeUp: Instant? {
        guard !isWriting, unwritten != nil || !waiting.isEmpty else { return nil }
        let isFull = waiting.count >= configuration.finishedRowLimit
        let interval = isFull ? configuration.finishedMinimumInterval : configuration.finishedInterval
        return lastWrite.map { $0 + interval } ?? Instant(sinceEpoch: .zero)
    }

    /// The row to write now, by `INSERT … ON CONFLICT DO NOTHING`, since the insert is repeated when its outcome is unknown.
    package mutating func row(at now: Instant) -> Row? {
        guard let due = nextWakeUp, now >= due else { return nil }
        isWriting = true
        lastWrite = now
        if let unwritten { return unwritten }
        let old = written.prefix { now - $0.at > configuration.finishedRetention }
        deleted = old.last?.sequence ?? deleted
        written.removeFirst(old.count)
        lastSequence += 1
        let count = min(waiting.count, configuration.finishedRowLimit)
        let row = Row(node: node, sequence: lastSequence, prefixes: Array(waiting.prefix(count)), deleteUpTo: deleted)
        waiting.removeFirst(count)
        unwritten = row
        return row
    }

    /// - Parameter isCommitted: false when the insert failed or has an unknown outcome; the row is written again.
    package mutating func wrote(isCommitted: Bool, at now: Instant) {
        isWriting = false
        guard isCommitted, let row = unwritten else { return }
        written.append((row.sequence, now))
        unwritten = nil
    }
}
