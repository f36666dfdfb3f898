package import Foundation
package import NodeAPI

/// The status of a running node: `GET /status` on its admin socket, JSON with ISO 8601 dates.
package struct NodeStatus: Codable, Sendable {
    package struct Outbox: Codable, Sendable {
        package let waiting: Int
        /// When the first of them expires.
        package let firstExpires: Date?
    }

    package struct ProtocolStatus: Codable, Sendable {
        package let name: String
        package let facts: [ProtocolFact]
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
    /// nil from an older node.
    package var hasGorush: Bool?
    /// Counts since the start, by the counter names in the log.
    package let counters: [String: Int]
    /// Additional lines of each protocol; nil from an older node.
    package let protocols: [ProtocolStatus]?
    /// The nodes of the cluster; nil for a single node, and from an older one.
    package let cluster: ClusterStatus?
}
