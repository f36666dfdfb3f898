import NodeAPI
import ArgumentParser
import WakuP2P

/// How a command finds and uses the nodes of a Waku network over libp2p.
struct NetworkOptions: ParsableArguments {
    @Option(Settings.attach) var attach: AttachArgument
    @Option(Settings.fleet) var fleet: [String]
    @Option(Settings.peerCount) var peerCount: Int
    @Option(Settings.dns) var dns: String?

    func nodeLists() throws(CommandFailure) -> [NodeTreeURL] {
        try checkPeerCount()
        return try fleet.map(Self.nodeLists(of:)).flatMap(\.self)
    }

    func checkPeerCount() throws(CommandFailure) {
        guard (1...100).contains(peerCount) else { throw CommandFailure(.usage, "--peer-count must be from 1 to 100") }
    }

    static func nodeLists(of fleet: String) throws(CommandFailure) -> [NodeTreeURL] {
        try (Fleet.lists[fleet] ?? [fleet]).map { text throws(CommandFailure) in
            guard let list = try? NodeTreeURL(parsing: text) else {
                throw CommandFailure(.usage, "--fleet \(fleet) is not \(Fleet.names) or a DNS node list: enrtree://<key>@<domain>")
            }
            return list
        }
    }

    func dnsClient() throws(CommandFailure) -> DNSClient {
        guard let text = Settings.dns.value(dns) else { return .system() }
        guard let address = AddressArgument(argument: text)?.address,
            let client = DNSClient(ipAddress: address.host, port: address.port)
        else {
            throw CommandFailure(.usage, "--dns \(text) is not an IP address and a port: for example 192.0.2.53:53")
        }
        return client
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
