package import NodeAPI
package import Delivery
package import Waku

/// Request and response bodies of the admin socket, besides ``NodeStatus``.
///
/// | call | request | response |
/// |---|---|---|
/// | `GET /status` | | ``NodeStatus`` |
/// | `GET /health` | | ``Health`` |
/// | `GET /peers` | | ``Peers`` |
/// | `GET /limits` | | ``Limits`` |
/// | `POST /drain`, `POST /drain/undo` | | ``Drain``, the new state |
/// | `POST /log-level` | ``LogLevel`` | ``LogLevel``, the previous one |
/// | `POST /outbox/retry`, `POST /outbox/drop` | ``Selection`` | ``Count`` |
/// | `POST /registrations/changed` | | ``Count`` of query topics: another process stored registrations |
/// | `POST /self-test` | | ``SelfTest`` |
/// | `GET /setup` | | ``Setup`` |
/// | `POST /gorush/test-push` | ``TestPush`` | ``TestedPush``, posted or written as the node itself would |
/// | `POST /web-push/test` | ``WebPushTest`` | ``WebPushTested`` |
/// | `POST /gorush/inspect` | | a list of ``InspectedGorush``, one for each endpoint, inspected with the node's own credentials |
///
/// Responses with a status other than 200 have ``Problem`` as body.
package enum AdminAPI {
    /// Whether the node is ready: the same as `/readyz`.
    package struct Health: Codable, Sendable {
        /// Why it is not ready, a line each; empty if it is.
        package let obstacles: [String]
    }

    /// The libp2p peers of the relay, if it uses libp2p.
    package struct Peers: Codable, Sendable {
        /// The addresses at which other peers can dial the node.
        package let addresses: [String]
        package let peers: [RelayPeer]
    }

    /// The work that limits refuse, by protocol.
    package struct Limits: Codable, Sendable {
        package struct Part: Codable, Sendable {
            package let `protocol`: String
            package let report: LimitReport
        }

        package let protocols: [Part]
        package init(_ protocols: [(name: String, report: LimitReport)]) {
            self.protocols = protocols.map { Part(protocol: $0.name, report: $0.report) }
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

    /// Ids of notifications in the outbox; nil for all.
    package struct Selection: Codable, Sendable {
        package let ids: [Int64]?
        package init(ids: [Int64]?) { self.ids = ids }
    }

    package struct Count: Codable, Sendable {
        package let count: Int
        /// The selected ids that do not wait; nil unless ids were selected, and from releases before 0.2.0.
        package var missing: [Int64]?

        package init(count: Int) { self.count = count }

        /// - Parameter found: those of the selection that wait.
        package init(_ found: [Int64], of selection: Selection) {
            let found = Set(found)
            count = found.count
            missing = selection.ids.map { ids in Set(ids).subtracting(found).sorted() }
        }
    }

    /// A message that the node sent to itself.
    package struct SelfTest: Codable, Sendable {
        /// nil if it did not come back.
        package let milliseconds: Int?
        /// Why it was not published.
        package let problem: String?
    }

    /// The configuration that `doctor` examines. Contains no secrets: neither credentials nor headers.
    package struct Setup: Codable, Hashable, Sendable {
        package struct Endpoint: Codable, Hashable, Sendable {
            /// Without credentials: URLs with credentials are rejected.
            package let url: String
            package let rule: EndpointRule

            package init(url: String, rule: EndpointRule) {
                self.url = url
                self.rule = rule
            }
        }

        /// The path of the identity file.
        package var identityPath: String?
        /// The value of `--store`, which has no password; nil: the database is in the data folder.
        package var store: String?
        /// The values of `--relay`.
        package var relays: [String] = []
        /// Whether the node is attached to a Waku network; nil from an older node, which always is.
        package var hasRelay: Bool?
        /// The values of `--fleet`.
        package var fleets: [String] = []
        package var pubsubTopics: [String] = []
        package var gorush: [Endpoint] = []
        /// Whether the node serves `/feedback`.
        package var takesFeedback = false
        /// The optional protocols that the node speaks, by name, each with its settings: files and addresses. nil from an older node.
        package var protocols: [String: [String: String]]?

        package init() {}
    }

    /// The inspection of a gorush server.
    package struct InspectedGorush: Codable, Sendable {
        package var rule: EndpointRule
        /// nil if its URL can't be used; ``problem`` has the reason.
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
