import CurlClient
import Logging
import LoopbackRelay
import NwakuRelay
import PushNode
import ServiceLifecycle
import Waku

/// Which relays a daemon attaches to: nodes by URL, or the network in its own process.
struct RelayAttachment {
    private let addresses: [NodeAddress]
    private let loopback: (network: LoopbackNetwork, server: LoopbackServer)?
    private let pollInterval: Duration
    private let logger: Logger

    /// - Parameter names: URLs, or `loopback`; nothing is `loopback` as well.
    init(_ names: [String], loopbackAddress: SocketAddress, pollInterval: Duration, logger: Logger) throws {
        addresses = try names.filter { $0 != "loopback" }.map { try NodeAddress($0) }
        self.pollInterval = pollInterval
        self.logger = logger
        if names.isEmpty || names.contains("loopback") {
            let network = LoopbackNetwork()
            loopback = (network, LoopbackServer(network: network, host: loopbackAddress.host, port: loopbackAddress.port))
        } else {
            loopback = nil
        }
    }

    /// What must run beside the node.
    var services: [any Service] {
        loopback.map { [LoopbackService(server: $0.server, logger: logger)] } ?? []
    }

    func relay(_ needs: RelayNeeds) throws -> any Relay {
        let client = CurlClient()
        var relays: [any Relay] = try addresses.map { address in
            try NwakuRelay(
                configuration: NwakuRelay.Configuration(
                    address: address, pubsubTopics: needs.pubsubTopics, pollInterval: pollInterval, catchUpTopics: needs.ownTopics,
                    lastSeen: needs.seenUntil, wants: needs.wants, report: needs.report), client: client, logger: logger)
        }
        if let loopback { relays.append(loopback.network.relay(pubsubTopics: needs.pubsubTopics, hearsItself: true)) }
        return relays.count == 1 ? relays[0] : RelaySet(relays)
    }
}

/// The loopback relay's REST API.
private struct LoopbackService: Service {
    let server: LoopbackServer
    let logger: Logger

    func run() async throws {
        try await server.run { [logger] port in logger.info("loopback relay listening", metadata: ["port": "\(port)"]) }
    }
}
