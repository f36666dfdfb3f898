import NodeAPI
import CurlClient
import LibP2P
import Logging
import LoopbackRelay
import LoopbackServer
import NwakuRelay
import PushNode
import ServiceLifecycle
import Core
import Waku
import WakuP2P

/// Creates the relays that a daemon attaches to: nodes by the URL of their REST API, nodes by multiaddr, or the loopback relay. May also listen
/// for other nodes.
final class RelayAttachment {
    private let targets: RelayTargets
    private let exemptAddresses: [AddressRange]
    private let listenAddresses: [Multiaddr]
    /// The listen addresses are defaults: the node can run without them.
    private let isListeningOptional: Bool
    private let loopback: (network: LoopbackNetwork, server: LoopbackServer)?
    private let pollInterval: Duration
    private let nodeKey: () throws(CommandFailure) -> NodeKey
    private let logger: Logger
    private var gossip: P2PRelay?
    /// The id by which peers know this node, once it has a relay over libp2p.
    private(set) var peerID: PeerID?

    /// - Parameters:
    ///   - names: URLs, multiaddrs, or `loopback`; empty means `loopback`, unless there is a fleet. nil: no relay.
    ///   - nodeKey: called when the key is needed: its file may be in the data folder, which is created later.
    init(
        _ names: [String]?, network: NetworkOptions, peers: PeerOptions, loopbackAddress: SocketAddress, loopbackNames: [String],
        pollInterval: Duration, logger: Logger,
        nodeKey: @escaping () throws(CommandFailure) -> NodeKey
    ) throws {
        let targets = try RelayTargets((names ?? []).filter { $0 != "loopback" }, network)
        self.targets = targets
        exemptAddresses = try peers.exemptAddresses()
        let hasLoopback = names.map { $0.isEmpty && !targets.hasPeers || $0.contains("loopback") } ?? false
        // Other nodes' messages would not count as seen until, and missed ones would not be looked up.
        guard !hasLoopback || !targets.hasPeers else {
            throw CommandFailure(
                .usage,
                "--relay loopback excludes --fleet and a --relay that is a multiaddr: remove one; other nodes can dial the loopback relay")
        }
        listenAddresses = try peers.addresses(hasLoopback: hasLoopback)
        isListeningOptional = peers.listen.isEmpty
        guard listenAddresses.isEmpty || hasLoopback || targets.hasPeers else {
            throw CommandFailure(
                .usage,
                "--listen needs --fleet or a --relay that is a multiaddr or loopback: otherwise messages of peers would reach no other node"
            )
        }
        guard !targets.isFilterClient || !hasLoopback && listenAddresses.isEmpty else {
            throw CommandFailure(.usage, "--attach filter needs --fleet or a --relay that is a multiaddr, and excludes --listen")
        }
        if hasLoopback {
            let loopbackNetwork = LoopbackNetwork()
            loopback = (
                loopbackNetwork,
                LoopbackServer(
                    network: loopbackNetwork, host: loopbackAddress.host, port: loopbackAddress.port, hostNames: loopbackNames,
                    logger: logger)
            )
        } else {
            loopback = nil
        }
        self.pollInterval = pollInterval
        self.nodeKey = nodeKey
        self.logger = logger
    }

    /// Services that must run beside the node.
    var services: [any Service] {
        loopback.map { [LoopbackService(server: $0.server, logger: logger)] } ?? []
    }

    /// Whether a libp2p host runs, which needs the node key.
    var usesNodeKey: Bool { targets.hasPeers || !listenAddresses.isEmpty }

    /// The relays, starting with the ones that report the progress of a publication.
    func relay(_ needs: RelayNeeds) throws -> any Relay {
        let client = CurlClient()
        var relays: [any Relay] = try targets.urls.map { url in
            var configuration = NwakuRESTRelay.Configuration(
                address: url, pubsubTopics: needs.pubsubTopics, pollInterval: pollInterval, catchUpTopics: needs.ownTopics,
                lastSeen: needs.seenUntil, wants: needs.wants, report: needs.report)
            configuration.learnedTopics = needs.learnedTopics
            return try NwakuRESTRelay(configuration: configuration, client: client, logger: logger)
        }
        if let loopback {
            let relay = loopback.network.relay(pubsubTopics: needs.pubsubTopics, hearsItself: true)
            if listenAddresses.isEmpty {
                relays.append(relay)
            } else {
                // Gossip delivers all messages to the loopback network, which filters for the node.
                var configuration = try configuration(needs.pubsubTopics)
                configuration.report = { if case .connectionRefused = $0 { needs.report($0) } }
                let gossip = gossip(configuration)
                relays.append(
                    GossipingLoopback(
                        relay: relay, participant: loopback.network.relay(pubsubTopics: needs.pubsubTopics), gossip: gossip))
            }
        } else if targets.hasPeers {
            var configuration = try configuration(needs.pubsubTopics)
            configuration.catchUpTopics = needs.ownTopics
            configuration.learnedTopics = needs.learnedTopics
            configuration.lastSeen = needs.seenUntil
            configuration.wants = needs.wants
            configuration.report = needs.report
            if targets.isFilterClient { configuration.contentTopics = needs.contentTopics }
            relays.insert(gossip(configuration), at: 0)
        }
        // A separate network without other participants.
        if relays.isEmpty { return LoopbackNetwork().relay(pubsubTopics: needs.pubsubTopics, hearsItself: true) }
        return relays.count == 1 ? relays[0] : RelaySet(relays)
    }

    private func configuration(_ topics: [PubsubTopic]) throws -> P2PRelay.Configuration {
        var configuration = try targets.configuration(
            key: try nodeKey(), listenAddresses: listenAddresses, pubsubTopics: topics)
        configuration.host.exemptAddresses = exemptAddresses
        return configuration
    }

    private func gossip(_ configuration: P2PRelay.Configuration) -> P2PRelay {
        let relay = P2PRelay(configuration: configuration, logger: logger)
        (gossip, peerID) = (relay, configuration.key.peerID)
        return relay
    }

    /// Starts listening for other nodes.
    func listen() async throws(CommandFailure) {
        guard let gossip else { return }
        do throws(RelayError) {
            try await gossip.listen()
        } catch {
            guard !isListeningOptional else {
                return logger.warning(
                    "failed to listen for libp2p connections", metadata: ["reason": "\(error.message) --listen gives another"])
            }
            await gossip.close()
            throw CommandFailure(.unavailable, "\(error.message) Choose another with --listen, or --listen off")
        }
    }
}

/// Runs the loopback relay's REST API.
private struct LoopbackService: Service {
    let server: LoopbackServer
    let logger: Logger

    func run() async throws {
        try await server.run { [logger] port in logger.info("loopback relay listening", metadata: ["port": .stringConvertible(port)]) }
    }
}
