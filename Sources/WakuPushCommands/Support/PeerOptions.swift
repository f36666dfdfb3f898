import ArgumentParser
import LibP2P
import PushNode
import WakuP2P

/// Options for a node's part in a Waku network over libp2p.
struct PeerOptions: ParsableArguments {
    @Option(
        help:
            "A multiaddr to listen on for other nodes; repeat it for several. By default only the loopback relay listens, on \(Self.loopback). off: don't listen."
    )
    var listen: [String] = Environment.list("listen")

    @Option(
        help:
            "relay: relay all messages of the pubsub topics. filter: have filter nodes send only messages on the node's content topics, at most 1,000, which is enough for a few hundred registrants."
    )
    var attach: AttachArgument = Environment.value("attach", .relay)

    @Option(help: "File with the libp2p key, the node's identity towards peers. Created if missing. [default: node.key in the data folder]")
    var nodeKey: String?

    @Option(
        help:
            "A fleet of nodes to connect to: \(Fleet.names), or a DNS node list, enrtree://…; repeat it for several."
    )
    var fleet: [String] = Environment.list("fleet")

    @Option(help: "Target number of --fleet nodes that deliver messages.")
    var peerCount: Int = Environment.value("peer-count", 8)

    @Option(help: "DNS server for node lists. [default: the system's servers]")
    var dns: String?

    @Option(
        help:
            "Peers from this network are exempt from the connection limits per /24 or /64, and are not disconnected in favour of others: loopback, private, or a range such as 10.0.0.0/8; repeat it for several."
    )
    var exemptNetwork: [String] = Environment.list("exempt-network")

    /// The default address of the loopback relay.
    static let loopback = "/ip4/127.0.0.1/tcp/60000"

    /// - Parameter hasLoopback: whether the node runs the loopback relay.
    func addresses(hasLoopback: Bool) throws(CommandFailure) -> [Multiaddr] {
        if listen == ["off"] { return [] }
        var addresses: [Multiaddr] = []
        for text in listen.isEmpty && hasLoopback ? [Self.loopback] : listen {
            guard let address = try? Multiaddr(text), address.peerID == nil, case .address? = address.endpoint?.host else {
                throw CommandFailure(.usage, "--listen \(text) is not an address to listen on: give one such as /ip4/0.0.0.0/tcp/60000")
            }
            addresses.append(address)
        }
        return addresses
    }

    /// The address ranges of ``exemptNetwork``.
    func exemptAddresses() throws(CommandFailure) -> [AddressRange] {
        var ranges: [AddressRange] = []
        for name in exemptNetwork {
            switch name {
            case "loopback": ranges += AddressRange.loopback
            case "private": ranges += AddressRange.privateNetworks
            default:
                guard let range = AddressRange(name) else {
                    throw CommandFailure(
                        .usage, "--exempt-network \(name) is not an address range: give loopback, private, or a range such as 10.0.0.0/8")
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
                    throw CommandFailure(.usage, "--fleet \(name) is not \(Fleet.names) or a DNS node list: enrtree://<key>@<domain>")
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
            throw CommandFailure(.usage, "--dns \(text) is not an IP address and a port: for example 192.0.2.53:53")
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

/// Fleets that are known by name, and their DNS node lists.
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
