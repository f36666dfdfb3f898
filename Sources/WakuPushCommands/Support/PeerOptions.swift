import ArgumentParser
import LibP2P
import PushNode
import WakuP2P

/// How a node takes part in a Waku network over libp2p.
struct PeerOptions: ParsableArguments {
    @Option(
        help:
            "A multiaddr where other nodes may dial this one; repeat it for several. Without it the loopback relay alone listens: on \(Self.loopback). off: nowhere."
    )
    var listen: [String] = Environment.list("listen")

    @Option(
        help:
            "relay: it relays all messages of its topics, and finds its own. filter: nodes send it those of its topics alone, of 1,000 at most: for a few hundred registrants."
    )
    var attach: AttachArgument = Environment.value("attach", .relay)

    @Option(help: "File with the key that other nodes know this one by. Made when missing. [default: node.key in the data folder]")
    var nodeKey: String?

    @Option(
        help:
            "Nodes of a fleet: \(Fleet.names), or a list of nodes in the DNS, enrtree://…; repeat it for several. Some of them are dialled."
    )
    var fleet: [String] = Environment.list("fleet")

    @Option(help: "How many nodes of --fleet are to bring messages at a time.")
    var peerCount: Int = Environment.value("peer-count", 8)

    @Option(help: "The DNS server that lists of nodes are asked of. [default: those of the system]")
    var dns: String?

    @Option(
        help:
            "Peers that dial from here are not limited by /24 or /64, nor disconnected for others: loopback, private, or a range like 10.0.0.0/8; repeat it for several."
    )
    var exemptNetwork: [String] = Environment.list("exempt-network")

    /// Where the loopback relay listens unless it is told otherwise.
    static let loopback = "/ip4/127.0.0.1/tcp/60000"

    /// - Parameter hasLoopback: Whether the node has a network of its own.
    func addresses(hasLoopback: Bool) throws(CommandFailure) -> [Multiaddr] {
        if listen == ["off"] { return [] }
        var addresses: [Multiaddr] = []
        for text in listen.isEmpty && hasLoopback ? [Self.loopback] : listen {
            guard let address = try? Multiaddr(text), address.peerID == nil, case .address? = address.endpoint?.host else {
                throw CommandFailure(.usage, "--listen \(text) is not an address to listen on: give one like /ip4/0.0.0.0/tcp/60000")
            }
            addresses.append(address)
        }
        return addresses
    }

    /// Those of ``exemptNetwork``.
    func exemptAddresses() throws(CommandFailure) -> [AddressRange] {
        var ranges: [AddressRange] = []
        for name in exemptNetwork {
            switch name {
            case "loopback": ranges += AddressRange.loopback
            case "private": ranges += AddressRange.privateNetworks
            default:
                guard let range = AddressRange(name) else {
                    throw CommandFailure(
                        .usage, "--exempt-network \(name) is not a range of addresses: give loopback, private, or one like 10.0.0.0/8")
                }
                ranges.append(range)
            }
        }
        return ranges
    }

    func nodeLists() throws(CommandFailure) -> [NodeTreeURL] {
        guard (1...100).contains(peerCount) else { throw CommandFailure(.usage, "--peer-count must be from 1 to 100") }
        var lists: [NodeTreeURL] = []
        for name in fleet {
            for text in Fleet.lists[name] ?? [name] {
                guard let list = try? NodeTreeURL(parsing: text) else {
                    throw CommandFailure(.usage, "--fleet \(name) is neither \(Fleet.names) nor a list of nodes: enrtree://<key>@<domain>")
                }
                lists.append(list)
            }
        }
        return lists
    }

    func dnsClient() throws(CommandFailure) -> DNSClient {
        guard let text = dns ?? Environment.string("dns") else { return .system() }
        guard let address = AddressArgument(argument: text)?.address,
            let client = DNSClient(ipAddress: address.host, port: address.port)
        else {
            throw CommandFailure(.usage, "--dns \(text) is not an IP address and a port: give one like 192.0.2.53:53")
        }
        return client
    }

    func keyFile(in folder: String) -> String {
        nodeKey ?? Environment.string("node-key") ?? folder + "/node.key"
    }
}

enum AttachArgument: String, ExpressibleByArgument, CaseIterable {
    case relay, filter
}

/// Whose nodes are known by name, and where they are listed.
enum Fleet {
    static let lists = [
        "status.prod": ["boot", "store"].map {
            "enrtree://AMOJVZX4V6EXP7NTJPMAYJYST2QP6AJXYW76IU6VGJS7UVSNDYZG4@\($0).prod.status.nodes.status.im"
        },
        "status.staging": ["boot", "store"].map {
            "enrtree://AI4W5N5IFEUIHF5LESUAOSMV6TKWF2MB6GU2YK7PU4TYUGUNOCEPW@\($0).staging.status.nodes.status.im"
        },
    ]
    static let names = lists.keys.sorted().joined(separator: ", ")
}
