import Waku

/// A node's health, `GET /health`.
package struct NodeHealth: Hashable, Sendable {
    /// `READY`, `NOT_READY`, `INITIALIZING`, …; `UNKNOWN` when the node does not report it.
    package let status: String
    /// By the protocol's name: `Relay`, `Store`, `Lightpush`, …
    package let protocols: [String: String]

    package var isReady: Bool { status == "READY" }

    static let unknown = NodeHealth(status: "UNKNOWN", protocols: [:])
}

/// `{"nodeHealth": text, "protocolsHealth": [{"<protocol>": text, "desc"?: text}, …]}`
struct NodeHealthJSON: Decodable {
    let nodeHealth: String?
    let protocolsHealth: [LenientElement<[String: String]>]?

    var health: NodeHealth {
        var protocols: [String: String] = [:]
        for (name, status) in (protocolsHealth ?? []).compactMap(\.value).joined() where name != "desc" {
            protocols[name] = status
        }
        return NodeHealth(status: nodeHealth ?? NodeHealth.unknown.status, protocols: protocols)
    }
}
