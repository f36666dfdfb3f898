import AdminProtocol
import HealthChecks
import NodeMetrics
import NwakuRelay
import Waku

/// Verdicts on the relay: its attachment, the Waku node behind it, and its peers.
extension NodeChecks {
    static func relay(_ relay: DoctorFacts.Relay, topics: [String]) -> [Finding] {
        switch relay {
        case .loopback:
            return [
                Finding(
                    "relay", .warn, "a network of this process's own: nobody else is on it",
                    remedy: "give --relay the REST API of a Waku node")
            ]
        case .unreachable(let address, let reason):
            return [
                Finding(
                    "relay", .fail, "\(address): \(reason)",
                    remedy: "see that the Waku node runs with --rest=true, and that --relay is right")
            ]
        case .node(let address, let node):
            return [health(address, node), network(node, topics), peers(node, topics), store(node)]
        case .peer(let address, let connection):
            return [peer(address, connection)]
        case .fleet(let name, let count):
            guard let count else { return [Finding("relay", .warn, "fleet \(name): not looked at, since no daemon runs")] }
            guard count > 0 else {
                return [
                    Finding(
                        "relay", .fail, "fleet \(name): none of its nodes brings messages",
                        remedy: "see the log for why: names are looked up in the DNS, and nodes dialled by TCP")
                ]
            }
            return [Finding("relay", .ok, "fleet \(name): \(count) nodes bring messages")]
        }
    }

    private static func peer(_ address: String, _ connection: DoctorFacts.Connection?) -> Finding {
        switch connection {
        case nil: Finding("relay", .warn, "\(address): not looked at, since no daemon runs")
        case .missing:
            Finding(
                "relay", .fail, "\(address): not connected",
                remedy: "see that the node runs and listens there, under this peer id and on this cluster")
        case .connected(0):
            Finding(
                "relay", .warn, "\(address): connected, and in no mesh with it",
                remedy: "see that it relays the topics of --pubsub-topic; waku-push admin peers tells more")
        case .connected: Finding("relay", .ok, "\(address): connected, and in a mesh with it")
        case .filterNode: Finding("relay", .ok, "\(address): connected, and it took this node's topics")
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
        guard let told = node.shards else {
            return Finding(
                "network", .warn, "the node does not tell its cluster and shards", remedy: "see that they are those of --pubsub-topic")
        }
        if let wrong = names.first(where: { Int($0.cluster) != told.cluster }) {
            return Finding(
                "network", .fail, "the node is in cluster \(told.cluster), and --pubsub-topic is in \(wrong.cluster)",
                remedy: "run the Waku node with --cluster-id=\(wrong.cluster), or give another --pubsub-topic")
        }
        let missing = names.map { Int($0.shard) }.filter { !told.shards.contains($0) }
        if !missing.isEmpty {
            let list = missing.map(String.init).joined(separator: ", ")
            return Finding(
                "network", .warn, "the node does not advertise shard \(list)", remedy: "run the Waku node with --shard=\(missing[0])")
        }
        return Finding("network", .ok, "cluster \(told.cluster), shards \(names.map { String($0.shard) }.joined(separator: ", "))")
    }

    private static func peers(_ node: NodeInspection, _ topics: [String]) -> Finding {
        guard let peers = node.peers else {
            return Finding(
                "peers", .ok, "not told: the Waku node's admin API is off (--rest-admin=true on a trusted interface shows them)")
        }
        let lonely = topics.compactMap { RelayShard($0) }.map { Int($0.shard) }.filter { peers[$0, default: 0] == 0 }
        if !lonely.isEmpty {
            return Finding(
                "peers", .fail, "none on shard \(lonely.map(String.init).joined(separator: ", "))",
                remedy: "give the Waku node bootstrap nodes of this network (--staticnode, --dns-discovery-url)")
        }
        let counts = peers.sorted { $0.key < $1.key }.map { "\($0.value) on shard \($0.key)" }.joined(separator: ", ")
        return Finding(
            "peers", peers.values.min() ?? 0 < 3 ? .warn : .ok, counts, remedy: "with fewer than three the node is easily cut off")
    }

    private static func store(_ node: NodeInspection) -> Finding {
        switch node.store {
        case .present: Finding("store", .ok, "present")
        case .missing:
            Finding(
                "store", .warn, "the Waku node has none: what polling misses is lost",
                remedy: "run the Waku node with --store=true, or with --storenode of one")
        case .unknown(let reason): Finding("store", .warn, "not asked: \(reason)", remedy: "see the Waku node's log")
        }
    }

    /// The REST API does not tell how many messages are kept for pollers; what was lost shows it.
    static func gaps(_ status: NodeStatus?) -> [Finding] {
        guard let status, let count = status.counters[Counter.gapFound.name], count > 0 else { return [] }
        return [
            Finding(
                "cache", .warn, "\(count) gaps since the start: messages may have been lost between two polls",
                remedy: "run the Waku node with --rest-relay-cache-capacity=10000, and let nobody else poll it")
        ]
    }
}
