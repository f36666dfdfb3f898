public import Gorush
public import Waku

/// The bodies of what an admin socket takes and gives, beside ``NodeStatus``.
///
/// | call | takes | gives |
/// |---|---|---|
/// | `GET /status` | | ``NodeStatus`` |
/// | `GET /peers` | | ``Peers`` |
/// | `POST /drain` | ``Drain`` | ``Drain`` |
/// | `POST /log-level` | ``LogLevel`` | ``LogLevel``, as it was before |
/// | `POST /outbox/retry`, `POST /outbox/drop` | ``Selection`` | ``Count`` |
/// | `POST /registrations/changed` | | ``Count`` of query topics: another process stored registrations |
/// | `POST /self-test` | | ``SelfTest`` |
/// | `GET /setup` | | ``Setup`` |
/// | `POST /gorush/inspect` | | ``DoctorFacts/Gorush`` of each endpoint, asked with the node's own credentials |
///
/// Anything else than 200 has ``Problem``.
public enum AdminAPI {
    /// Of the relay's libp2p, where it has one.
    public struct Peers: Codable, Sendable {
        /// Where others dial the node.
        public let addresses: [String]
        public let peers: [RelayPeer]
    }

    public struct Drain: Codable, Sendable {
        public let isOn: Bool
        public init(isOn: Bool) { self.isOn = isOn }
    }

    public struct LogLevel: Codable, Sendable {
        public let level: String
        public init(level: String) { self.level = level }
    }

    /// Of notifications in the outbox; nil for all.
    public struct Selection: Codable, Sendable {
        public let ids: [Int64]?
        public init(ids: [Int64]?) { self.ids = ids }
    }

    public struct Count: Codable, Sendable {
        public let count: Int
        public init(count: Int) { self.count = count }
    }

    /// A message that the node sent to itself.
    public struct SelfTest: Codable, Sendable {
        /// nil: it did not come.
        public let milliseconds: Int?
        /// Why it was not published.
        public let problem: String?
    }

    /// What the node is configured with, as far as `doctor` looks at it. Of secrets it has none: neither credentials nor headers.
    public struct Setup: Codable, Hashable, Sendable {
        public struct Endpoint: Codable, Hashable, Sendable {
            /// Without credentials: a URL that has some is not accepted.
            public let url: String
            public let rule: EndpointRule

            public init(url: String, rule: EndpointRule) {
                self.url = url
                self.rule = rule
            }
        }

        /// Where its key file is.
        public var identityPath: String?
        /// As `--relay` takes them.
        public var relays: [String] = []
        /// As `--fleet` takes them.
        public var fleets: [String] = []
        public var pubsubTopics: [String] = []
        public var gorush: [Endpoint] = []
        /// Whether it serves `/feedback`.
        public var takesFeedback = false

        public init() {}
    }

    public struct Problem: Codable, Sendable {
        public let problem: String
    }
}
