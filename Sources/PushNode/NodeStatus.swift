public import Foundation

/// What a running node tells of itself: `GET /status` on its admin socket, JSON with ISO 8601 dates.
public struct NodeStatus: Codable, Sendable {
    public struct Outbox: Codable, Sendable {
        public let waiting: Int
        /// When the first of them is given up.
        public let firstExpires: Date?
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
}
