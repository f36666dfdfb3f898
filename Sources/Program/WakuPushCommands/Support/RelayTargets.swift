import LibP2P
import NwakuRelay
import Waku
import WakuP2P

/// The nodes that a command attaches to: by the URLs of their REST APIs, by their multiaddrs, or found in DNS node lists.
struct RelayTargets {
    let urls: [NodeAddress]
    private let peers: [Multiaddr]
    private let nodeLists: [NodeTreeURL]
    private let options: NetworkOptions

    /// - Parameters:
    ///   - names: URLs and multiaddrs.
    ///   - options: Node lists, and how to use nodes over libp2p.
    /// - Throws: ``CommandFailure``, `NwakuRelayError`
    init(_ names: [String], _ options: NetworkOptions) throws {
        nodeLists = try options.nodeLists()
        peers = try names.filter { $0.hasPrefix("/") }.map(Self.peer)
        urls = try names.filter { !$0.hasPrefix("/") }.map { try NodeAddress($0) }
        self.options = options
    }

    /// Whether any node is reached over libp2p.
    var hasPeers: Bool { !peers.isEmpty || !nodeLists.isEmpty }

    var isFilterClient: Bool { options.attach == .filter }

    static func peer(_ text: String) throws(CommandFailure) -> Multiaddr {
        guard let address = try? Multiaddr(text), address.peerID != nil, address.endpoint != nil else {
            throw CommandFailure(.usage, "--relay \(text) is not a node's address: give one such as /ip4/10.0.0.5/tcp/60000/p2p/16Uiu2HA…")
        }
        return address
    }

    /// The configuration of a relay over libp2p at these nodes.
    func configuration(
        key: NodeKey, listenAddresses: [Multiaddr] = [], pubsubTopics: [PubsubTopic]
    ) throws(CommandFailure) -> P2PRelay.Configuration {
        var configuration = P2PRelay.Configuration(
            key: key, peers: peers, listenAddresses: listenAddresses, pubsubTopics: pubsubTopics)
        configuration.nodeLists = nodeLists
        configuration.peerTarget = options.peerCount
        configuration.dns = try options.dnsClient()
        configuration.host.agentVersion = "waku-push/\(Version.current)"
        return configuration
    }
}
