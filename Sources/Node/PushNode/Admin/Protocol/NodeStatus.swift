package import Foundation
package import NodeAPI

/// The status of a running node: `GET /status` on its admin socket, JSON with ISO 8601 dates.
package struct NodeStatus: Codable, Sendable {
    package struct Outbox: Codable, Sendable {
        package let waiting: Int
        /// When the first of them expires.
        package let firstExpires: Date?

        package init(waiting: Int, firstExpires: Date?) {
            self.waiting = waiting
            self.firstExpires = firstExpires
        }
    }

    package struct ProtocolStatus: Codable, Sendable {
        package struct Fact: Codable, Sendable {
            package let name: String
            package let value: String
        }

        package let name: String
        package let facts: [Fact]
    }

    package let version: String
    package let processID: Int32
    package let started: Date
    /// The node's public key, uncompressed, in hexadecimal digits.
    package let publicKey: String
    package let isReady: Bool
    package let isDraining: Bool
    package let logLevel: String?
    package let findings: [Finding]
    package let pubsubTopics: [String]
    package let queryTopics: Int
    package let outbox: Outbox
    /// The circuit breaker: `closed` (notifications are posted), `open` (posts are paused) or `half-open` (a single post is tried).
    package let breaker: String
    /// Counts since the start, by the counter names in the log.
    package let counters: [String: Int]
    /// Additional lines of each protocol; nil from an older node.
    package let protocols: [ProtocolStatus]?

    package init(
        version: String, processID: Int32, started: Date, publicKey: String, isReady: Bool, isDraining: Bool, logLevel: String?,
        findings: [Finding], pubsubTopics: [String], queryTopics: Int, outbox: Outbox, breaker: String, counters: [String: Int],
        protocols: [ProtocolStatus]? = nil
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
        self.protocols = protocols
    }
}
