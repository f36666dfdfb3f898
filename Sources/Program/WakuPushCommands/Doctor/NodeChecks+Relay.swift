import PushNode
import NodeAPI
import NodeMetrics
import NwakuRelay
import Waku

/// Findings on the relay: its attachment, the Waku node behind it, and its peers.
extension NodeChecks {
    /// - Parameter isOnly: whether there is no other relay, whose rows have the same names.
    static func relay(_ relay: DoctorFacts.Relay, topics: [String], isOnly: Bool) -> [Finding] {
        switch relay {
        case .none:
            return [Finding("relay", .ok, "none: protocols over HTTP need none; clients of Status are not served without --relay")]
        case .loopback:
            return [
                Finding(
                    "relay", .warn, "loopback: a network within this process, without other nodes",
                    remedy: "set --relay to the REST API of a Waku node")
            ]
        case .unreachable(let address, let reason):
            return [
                Finding(
                    "relay", .fail, "\(address): \(reason)",
                    remedy: "check that the Waku node runs with --rest=true, and that --relay is its URL")
            ]
        case .node(let address, let node):
            let details = [network(node, topics), peers(node, topics), store(node)]
            guard !isOnly else { return [health(address, node)] + details }
            return [health(address, node)]
                + details.map { Finding($0.check, $0.verdict, "\(address): \($0.text)", remedy: $0.remedy) }
        case .peer(let address, let connection):
            return [peer(address, connection)]
        case .fleet(let name, let count):
            guard let count else { return [Finding("relay", .warn, "fleet \(name): unknown, since no daemon runs")] }
            guard count > 0 else {
                return [
                    Finding(
                        "relay", .fail, "fleet \(name): none of its nodes delivers messages",
                        remedy: "the log has the reason: names are resolved by DNS, and nodes dialled by TCP")
                ]
            }
            return [Finding("relay", .ok, "fleet \(name): \(count) nodes deliver messages")]
        }
    }

    private static func peer(_ address: String, _ connection: DoctorFacts.Connection?) -> Finding {
        switch connection {
        case nil: Finding("relay", .warn, "\(address): unknown, since no daemon runs")
        case .missing:
            Finding(
                "relay", .fail, "\(address): not connected",
                remedy: "check that it runs there, with this peer id and on this cluster, and that no other program has this node.key")
        case .connected(0):
            Finding(
                "relay", .warn, "\(address): connected, but in no mesh",
                remedy: "its mesh is full, or it does not relay the topics of --pubsub-topic: give further nodes as --relay")
        case .connected: Finding("relay", .ok, "\(address): connected, and in a mesh")
        case .filterNode: Finding("relay", .ok, "\(address): connected, and it accepted this node's topics")
        }
    }

    private static func health(_ address: String, _ node: NodeInspection) -> Finding {
        let version = node.version.map { ", \($0)" } ?? ""
        let remedy = "see the Waku node's log: it may be starting, or have no peers"
        if let relay = node.health.protocols["Relay"], relay.uppercased() != "READY" {
            return Finding("relay", .fail, "\(address)\(version): its relay is \(relay)", remedy: remedy)
        }
        if node.health.status == "UNKNOWN" { return Finding("relay", .ok, "\(address)\(version) answers") }
        if !node.health.isReady { return Finding("relay", .warn, "\(address)\(version) is \(node.health.status)", remedy: remedy) }
        return Finding("relay", .ok, "\(address)\(version) is ready")
    }

    private static func network(_ node: NodeInspection, _ topics: [String]) -> Finding {
        let names = topics.compactMap { RelayShard($0) }
        guard let record = node.shards else {
            return Finding(
                "network", .warn, "the cluster and shards of the node are unknown", remedy: "check that they are those of --pubsub-topic")
        }
        if let wrong = names.first(where: { $0.cluster != record.clusterID }) {
            return Finding(
                "network", .fail, "the node is in cluster \(record.clusterID), but --pubsub-topic is in \(wrong.cluster)",
                remedy: "run the Waku node with --cluster-id=\(wrong.cluster), or change --pubsub-topic")
        }
        let missing = names.map(\.shard).filter { !record.shards.contains($0) }
        if !missing.isEmpty {
            let list = missing.map(String.init).joined(separator: ", ")
            return Finding(
                "network", .warn, "the node does not advertise shard \(list)", remedy: "run the Waku node with --shard=\(missing[0])")
        }
        return Finding("network", .ok, "cluster \(record.clusterID), shards \(names.map { String($0.shard) }.joined(separator: ", "))")
    }

    private static func peers(_ node: NodeInspection, _ topics: [String]) -> Finding {
        guard let peers = node.peers else {
            return Finding(
                "peers", .ok, "unknown: the Waku node's admin API is off (--rest-admin=true on a trusted interface shows them)")
        }
        let isolated = topics.compactMap { RelayShard($0) }.map { Int($0.shard) }.filter { peers[$0, default: 0] == 0 }
        if !isolated.isEmpty {
            return Finding(
                "peers", .fail, "none on shard \(isolated.map(String.init).joined(separator: ", "))",
                remedy: "give the Waku node bootstrap nodes of this network (--staticnode, --dns-discovery-url)")
        }
        let counts = peers.sorted { $0.key < $1.key }.map { "\($0.value) on shard \($0.key)" }.joined(separator: ", ")
        return Finding(
            "peers", peers.values.min() ?? 0 < 3 ? .warn : .ok, counts, remedy: "with fewer than three peers the node is easily cut off")
    }

    private static func store(_ node: NodeInspection) -> Finding {
        switch node.store {
        case .present: Finding("store", .ok, "present")
        case .withoutLookUps:
            Finding(
                "store", .warn, "present, but it refuses look-ups by hash: whether answers were published is not checked",
                remedy: "run nwaku 0.35 or later")
        case .missing:
            Finding(
                "store", .warn, "the Waku node has none: messages that polling misses are lost",
                remedy: "run the Waku node with --store=true, or with --storenode")
        case .unknown(let reason): Finding("store", .warn, "not queried: \(reason)", remedy: "see the Waku node's log")
        }
    }

    /// What the daemon could not look up, or else the gaps. The REST API does not expose the capacity of the message cache, so each poll of as
    /// many messages as the smallest cache has counts as one.
    static func gaps(_ facts: DoctorFacts) -> [Finding] {
        if let failure = facts.daemon?.findings.first(where: { $0.check == catchUpCheck }) { return [failure] }
        guard let count = facts.daemon?.counters[Counter.gapFound.name], count > 0 else { return [] }
        let text = "\(count) \(count == 1 ? "gap" : "gaps") since the start: messages may have been lost "
        if facts.isGossipOnly {
            return [
                Finding(
                    catchUpCheck, .warn, text + "while no peer delivered messages; they are looked up in peers' stores",
                    remedy: "connect the node to several peers, one of them with a store")
            ]
        }
        return [
            Finding(
                catchUpCheck, .warn, text + "between two polls",
                remedy:
                    "run the Waku node with --rest-relay-cache-capacity=10000 and a store, and let no other program poll it; polls of 50 messages or more count even then, and are looked up in the store"
            )
        ]
    }
}
