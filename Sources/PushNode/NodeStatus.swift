public import Foundation

/// What a running node tells of itself: `GET /status` on its admin socket, JSON with ISO 8601 dates.
public struct NodeStatus: Codable, Sendable {
    public struct Outbox: Codable, Sendable {
        public let waiting: Int
        /// When the first of them is given up.
        public let firstExpires: Date?

        public init(waiting: Int, firstExpires: Date?) {
            self.waiting = waiting
            self.firstExpires = firstExpires
        }
    }

    public let version: String
    public let processID: Int32
    public let started: Date
    /// The node's own, uncompressed, hex.
    public let publicKey: String
    public let isReady: Bool
    public let isDraining: Bool
    public let logLevel: String?
    public let findings: [Finding]
    public let pubsubTopics: [String]
    public let queryTopics: Int
    public let outbox: Outbox
    /// `closed`: gorush gets notifications. `open`: it is given up for now. `half-open`: one is on its way to see.
    public let breaker: String
    /// Since the start, by the names in the log.
    public let counters: [String: Int]

    public init(
        version: String, processID: Int32, started: Date, publicKey: String, isReady: Bool, isDraining: Bool, logLevel: String?,
        findings: [Finding], pubsubTopics: [String], queryTopics: Int, outbox: Outbox, breaker: String, counters: [String: Int]
    ) {
        self.version = version
        self.processID = processID
        self.started = started
        self.publicKey = publicKey
        self.isReady = isReady
        self.isDraining = isDraining
        self.logLevel = logLevel
        self.findings = findings
        self.pubsubTopics = pubsubTopics
        self.queryTopics = queryTopics
        self.outbox = outbox
        self.breaker = breaker
        self.counters = counters
    }
}
