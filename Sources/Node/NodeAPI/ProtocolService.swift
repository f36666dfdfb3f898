public import Core
public import NodeMetrics
public import Storage

/// A running protocol.
public protocol ProtocolService: Sendable {
    /// Receives the messages on its topics; none by default.
    var receiver: any WakuReceiver { get }

    /// Background work, which includes listening on endpoints other than topics. Runs until cancelled; the store is open meanwhile.
    ///
    /// - Throws: `NodeError` if it can't run at all, for example because an address is in use: the node stops with this error.
    func run() async throws

    /// The required retention of accepted deliveries, as duration and number; nil: the node's own retention suffices.
    var deliveryMemory: DeliveryMemory? { get }
    /// Called once a minute: deletes rows that are older than the cutoff.
    func prune(_ retention: Retention) async
    /// Called once a minute on each node of a cluster: recounts the rows that limits depend on, and ends the minute of ``limitReport``.
    func recount() async
    /// Called once an hour: ends registrations that were not renewed. After the clock was set forward, `now` follows it only after the time for which
    /// deliveries are kept, 24 hours.
    func expire(at now: Timestamp) async
    /// Called after another process changed the stored rows.
    func reload() async throws(StoreError)

    /// Reads the files that its options name again, when the operator requests it.
    func reloadFiles()
    /// The port of its own HTTP server once that listens; nil if it has none.
    var httpPort: Int? { get }
    /// Whether its own HTTP server listens; true for a protocol without one.
    var isListening: Bool { get }
    /// Whether its own HTTP server listens, or is certain that it can: until then the node takes no messages and posts nothing, since a port in use
    /// ends it. ``isListening`` by default.
    var hasPort: Bool { get }

    /// Called when another node, or possibly this one, changed the rows of a registrant, identified as in ``NodeProtocol/registrants``.
    func registeredElsewhere(_ name: [UInt8])
    /// Called with the number of nodes that share the messages when it changes.
    func nodeCountChanged(_ nodeCount: Int)
    /// Called when this node's share of the protocol's keys changes: see `ClusterMembership.offerKeys(_:)`.
    func keyShareChanged(_ share: KeyShare)

    /// Its queues with their limits; nil for queues without their own limit.
    var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] { get }
    /// Sets its gauges. Called when metrics are scraped.
    func updateGauges(_ counters: Counters) async
    /// Numbers of registered devices; nil if the protocol has none or they can't be read now.
    func registrations() async -> DeviceFigures?
    /// Called once after the start: reads the numbers of devices on which ``findings`` depend, which may take a second per million.
    func countDevices() async
    /// Results of its checks at this moment: a failed one makes the node not ready; `admin status` and `doctor` list all.
    var findings: [Finding] { get }
    /// The work that its limits refuse; nil if it has no limits.
    var limitReport: LimitReport? { get }
    /// Additional lines for `admin status` and the status page: names and values without secrets.
    func facts() async -> [ProtocolFact]
}

extension ProtocolService {
    public var receiver: any WakuReceiver { NoReceiver() }
    public func run() async throws {}
    public var deliveryMemory: DeliveryMemory? { nil }
    public func prune(_ retention: Retention) async {}
    public func recount() async {}
    public func expire(at now: Timestamp) async {}
    public func reload() async throws(StoreError) {}
    public func reloadFiles() {}
    public var httpPort: Int? { nil }
    public var isListening: Bool { true }
    public var hasPort: Bool { isListening }
    public func registeredElsewhere(_ name: [UInt8]) {}
    public func nodeCountChanged(_ nodeCount: Int) {}
    public func keyShareChanged(_ share: KeyShare) {}
    public var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] { [] }
    public func updateGauges(_ counters: Counters) async {}
    public func registrations() async -> DeviceFigures? { nil }
    public func countDevices() async {}
    public var findings: [Finding] { [] }
    public var limitReport: LimitReport? { nil }
    public func facts() async -> [ProtocolFact] { [] }
}

/// The retention of accepted deliveries that a protocol needs.
public struct DeliveryMemory: Sendable {
    package let duration: Duration
    /// The maximum number of rows, of all protocols together.
    package let rowLimit: Int

    package init(duration: Duration, rowLimit: Int) {
        (self.duration, self.rowLimit) = (duration, rowLimit)
    }
}

/// The rows to keep when tables are pruned.
public struct Retention: Sendable {
    /// Deliveries and answers before this time are deleted.
    package let cutoff: Timestamp
    /// Maximum number of rows of each kind from before ``fresh``.
    package let rowLimit: Int
    /// Rows since this time are kept, however many: a message from then may come again.
    package let fresh: Timestamp
    /// The current time, for tables with their own retention.
    package let now: Timestamp

    package init(cutoff: Timestamp, rowLimit: Int, fresh: Timestamp = Timestamp(rawValue: .max), now: Timestamp) {
        self.cutoff = cutoff
        self.rowLimit = rowLimit
        self.fresh = fresh
        self.now = now
    }

    /// Extends the retention to cover each of `memories`.
    package func covering(_ memories: [DeliveryMemory]) -> Retention {
        Retention(
            cutoff: memories.map { now - $0.duration }.reduce(cutoff, min), rowLimit: memories.map(\.rowLimit).reduce(rowLimit, max),
            fresh: fresh, now: now)
    }
}

/// A line of `admin status` and of the status page.
public struct ProtocolFact: Codable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}
