import ArgumentParser
import CurlClient
import LibP2P
import Logging
import NwakuRelay
import PushClient
import Core
import Waku
import WakuP2P

/// Options of every client command that uses the network. Their defaults come from the variables of a daemon: of several topics the first, and without
/// its own loopback network, which a client reaches at the default relay.
struct ClientOptions: ParsableArguments {
    static let defaultRelay = "http://127.0.0.1:8645"

    @Option(
        name: .customLong("relay"),
        help: "A Waku node, its REST API's URL or its multiaddr; repeat it for several. [default: \(Self.defaultRelay)]")
    var relays: [String] = Environment.list("relay").filter { $0 != "loopback" }

    @OptionGroup(title: "libp2p")
    var network: NetworkOptions

    @Option(help: "The pubsub topic to publish on.")
    var pubsubTopic: String = Environment.list("pubsub-topic").first ?? PubsubTopic.statusDefault.rawValue

    @Option(duration: "How long to wait for answers, such as 500ms, 10s or 2m.")
    var timeout: DurationArgument = Environment.value("timeout") ?? DurationArgument("10s")

    @Flag(help: "Print JSON.")
    var json = false

    var topic: PubsubTopic { PubsubTopic(rawValue: pubsubTopic) }

    /// Of a client that is opened with a store.
    var configuration: StatusPushClient.Configuration {
        var configuration = StatusPushClient.Configuration()
        configuration.pubsubTopic = topic
        return configuration
    }

    /// When the timeout ends that begins now.
    var end: ContinuousClock.Instant { .now + timeout.duration }

    /// - Throws: ``CommandFailure``, `NwakuRelayError`
    func makeRelays() throws -> ClientRelays {
        try Serve.checkTopic(pubsubTopic)
        let names = relays.isEmpty && network.fleet.isEmpty ? [Self.defaultRelay] : relays
        let targets = try RelayTargets(names, network)
        guard targets.hasPeers || !targets.isFilterClient else {
            throw CommandFailure(.usage, "--attach filter is for a --relay that is a multiaddr, or a --fleet")
        }
        return try ClientRelays(targets, topic: topic, names: names + network.fleet)
    }
}

/// A client's connections to the network: one per REST API of a node, and one relay for all nodes reached over libp2p.
struct ClientRelays: Sendable {
    let all: [any Relay]
    private let libp2p: P2PRelay?
    private let isFilterClient: Bool
    private let names: [String]

    /// The maximum age of messages that are fetched from a node's store: registrations are repeated with growing pauses, so that answers to earlier ones
    /// are still useful, and the clock of this machine may be ahead of the servers'.
    private static let lookBack = Duration.seconds(600)

    /// Does not connect yet.
    fileprivate init(_ targets: RelayTargets, topic: PubsubTopic, names: [String]) throws {
        let logger = Logger.warnings
        self.names = names
        isFilterClient = targets.isFilterClient
        if targets.hasPeers {
            // A new key each time, so that peers can't recognize the client.
            var configuration = try targets.configuration(key: .generate(), pubsubTopics: [topic])
            // Subscribe only to the topics that the client watches.
            if isFilterClient { configuration.contentTopics = { _ in [] } }
            libp2p = P2PRelay(configuration: configuration, logger: logger)
        } else {
            libp2p = nil
        }
        let client = CurlClient()
        let watches = targets.urls.map { url in
            NwakuStoreWatch(
                configuration: NwakuStoreWatch.Configuration(address: url, pubsubTopics: [topic], startTime: .now() - Self.lookBack),
                client: client, logger: logger)
        }
        all = (libp2p.map { [$0] } ?? []) + watches
    }

    var relay: any Relay { all.count == 1 ? all[0] : RelaySet(all) }

    /// Why no messages are sent or received; nil when a relay is attached.
    var obstacle: String? {
        var reason: String?
        for relay in all {
            guard case .detached(let text) = relay.state else { return nil }
            reason = reason ?? text
        }
        return reason
    }

    /// The difference of this machine's clock from that of the Waku nodes that are used by REST; nil if it is too small to matter.
    var wrongClock: String? { relay.clockAhead.flatMap(Self.wrongClock) }

    /// - Parameter ahead: By how much a Waku node's clock is ahead of this machine's.
    static func wrongClock(nodeAhead ahead: Duration) -> String? {
        // Beyond this relays drop a message, and stores do not keep it.
        guard ahead < .seconds(-20) || ahead > .seconds(20) else { return nil }
        let difference = ahead < .zero ? "\(-ahead.components.seconds) s ahead of" : "\(ahead.components.seconds) s behind"
        return "this machine's clock is \(difference) that of the Waku node: synchronise it by NTP"
    }

    /// A store can be queried at once, and filter nodes are asked for each topic. Gossip needs a peer on the topic first.
    ///
    /// - Throws: ``CommandFailure``
    func waitUntilAttached(timeout: Duration) async throws {
        guard all.count == 1, let libp2p, !isFilterClient else { return }
        let deadline = ContinuousClock.now + timeout
        while libp2p.state != .attached {
            guard ContinuousClock.now < deadline else {
                throw CommandFailure(
                    .unavailable,
                    "the node at \(names.joined(separator: ", ")) does not gossip with this client: is it there, and on the topic?")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    func close() async {
        await libp2p?.close()
    }
}

extension ContinuousClock.Instant {
    /// The time until then, rounded since errors name it; zero once it has passed.
    var remaining: Duration { (self - .now).roundedUp }
}

extension Duration {
    /// To whole tenths of a second, below that to milliseconds; zero if it is negative.
    var roundedUp: Duration {
        let unit: Duration = self < .milliseconds(100) ? .milliseconds(1) : .milliseconds(100)
        return unit * max(Int((self / unit).rounded(.up)), 0)
    }
}
