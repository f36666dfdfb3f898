package import Delivery
package import Gorush
package import Waku

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
/// | `POST /gorush/inspect` | | a list of ``InspectedGorush``, one for each endpoint, asked with the node's own credentials |
///
/// Anything else than 200 has ``Problem``.
package enum AdminAPI {
    /// Of the relay's libp2p, where it has one.
    package struct Peers: Codable, Sendable {
        /// Where others dial the node.
        package let addresses: [String]
        package let peers: [RelayPeer]

        package init(addresses: [String], peers: [RelayPeer]) {
            self.addresses = addresses
            self.peers = peers
        }
    }

    package struct Drain: Codable, Sendable {
        package let isOn: Bool
        package init(isOn: Bool) { self.isOn = isOn }
    }

    package struct LogLevel: Codable, Sendable {
        package let level: String
        package init(level: String) { self.level = level }
    }

    /// Of notifications in the outbox; nil for all.
    package struct Selection: Codable, Sendable {
        package let ids: [Int64]?
        package init(ids: [Int64]?) { self.ids = ids }
    }

    package struct Count: Codable, Sendable {
        package let count: Int
        package init(count: Int) { self.count = count }
    }

    /// A message that the node sent to itself.
    package struct SelfTest: Codable, Sendable {
        /// nil: it did not come.
        package let milliseconds: Int?
        /// Why it was not published.
        package let problem: String?

        package init(milliseconds: Int?, problem: String?) {
            self.milliseconds = milliseconds
            self.problem = problem
        }
    }

    /// What the node is configured with, as far as `doctor` looks at it. Of secrets it has none: neither credentials nor headers.
    package struct Setup: Codable, Hashable, Sendable {
        package struct Endpoint: Codable, Hashable, Sendable {
            /// Without credentials: a URL that has some is not accepted.
            package let url: String
            package let rule: EndpointRule

            package init(url: String, rule: EndpointRule) {
                self.url = url
                self.rule = rule
            }
        }

        /// Where its key file is.
        package var identityPath: String?
        /// As `--relay` takes them.
        package var relays: [String] = []
        /// As `--fleet` takes them.
        package var fleets: [String] = []
        package var pubsubTopics: [String] = []
        package var gorush: [Endpoint] = []
        /// Whether it serves `/feedback`.
        package var takesFeedback = false
        /// Whether it speaks version 0.1; nil from an older node.
        package var speaksStatusV01: Bool?

        package init() {}
    }

    /// What a gorush server answered.
    package struct InspectedGorush: Codable, Sendable {
        package var rule: EndpointRule
        /// nil when its URL can't be used, and ``problem`` says why.
        package var inspection: GorushInspection?
        package var problem: String?

        package init(_ rule: EndpointRule, _ inspection: GorushInspection?, problem: String? = nil) {
            self.rule = rule
            self.inspection = inspection
            self.problem = problem
        }
    }

    package struct Problem: Codable, Sendable {
        package let problem: String
        package init(problem: String) { self.problem = problem }
    }
}
