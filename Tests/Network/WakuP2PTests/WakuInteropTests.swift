import GossipSub
import LibP2P
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import WakuP2P

/// Tests with py-libp2p 0.8.1 as a Waku node.
@Suite(
    .enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python with libp2p 0.8.1: see Deploy/test"), .serialized,
    .timeLimit(.minutes(5)))
struct PythonRelayTests {
    private static let topic = PubsubTopic.statusDefault
    private static let contentTopic = ContentTopic(TopicTag(of: "chat"))

    private func message(_ number: UInt8, size: Int = 4) -> WakuMessage {
        WakuMessage(payload: [UInt8](repeating: number, count: size), contentTopic: Self.contentTopic, timestamp: .now())
    }

    private func relay(_ topic: String = topic.rawValue) throws -> PythonPeer { try PythonPeer("py_waku_relay.py", [topic]) }

    private func bothWays(_ node: RunningRelay, _ python: PythonPeer) async throws {
        try await eventually { node.relay.state == .attached }
        try await python.says("mesh") { $0 != ["0"] }
        #expect(python.said("metadata").allSatisfy { $0 == ["16"] })
        for (number, size) in [(1, 4), (2, 1000), (3, 100_000)] as [(UInt8, Int)] {
            let ours = message(number, size: size)
            #expect(try await node.relay.publish(ours, on: Self.topic) == .confirmed)
            try await python.says("received") { $0 == [hexString(ours.encoded())] }
            let theirs = message(number + 100, size: size)
            try python.tell("publish \(hexString(theirs.encoded()))")
            try await eventually { node.received.contains { $0.message == theirs } }
        }
        // Each once.
        #expect(node.received.count == 3)
        #expect(node.relay.counters.rejected == 0)
    }

    @Test func weDial() async throws {
        let python = try relay()
        let address = try Multiaddr(try await python.says("address")[0])
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [address])
        configuration.gossip.replyLimit = 1
        let node = RunningRelay(configuration)
        try await bothWays(node, python)
        try await python.says("metadata")
        let peer = try #require(node.relay.peers.first)
        #expect(peer.protocols.contains(WakuProtocol.store) && peer.meshes == [Self.topic.rawValue] && !peer.isInbound)
        #expect(peer.messagesReceived >= 3 && peer.messagesSent >= 3 && peer.bytesSent > 100_000)

        // Its store has the messages published by both, returned in pages.
        let known = node.received[0].hash
        #expect(try await node.relay.lookUp([known, message(50).hash(on: Self.topic)]) == [known])
        try await python.says("queried")
        // It publishes messages of other nodes.
        let pushed = message(60)
        #expect(try await node.relay.push(pushed, on: Self.topic) == .confirmed)
        try await python.says("pushed") { $0 == [hexString(pushed.encoded())] }
        await node.stop()
        try await python.says("subscribed") { _ in python.said("subscribed").last == ["0"] }
    }

    @Test func theyDial() async throws {
        let node = RunningRelay(
            P2PRelay.Configuration(key: .generate(), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")]))
        let address = try await node.address()
        let python = try relay()
        try await python.says("address")
        try python.tell("dial \(address)")
        try await bothWays(node, python)
        #expect(node.relay.peers.first?.isInbound == true)
        await node.stop()
    }

    /// Missed messages come from its store, in three pages.
    @Test func catchesUp() async throws {
        let python = try relay()
        let address = try Multiaddr(try await python.says("address")[0])
        var missed: Set<WakuMessage> = []
        for number in 0..<250 {
            let message = WakuMessage(payload: [UInt8(number)], contentTopic: Self.contentTopic, timestamp: .now())
            missed.insert(message)
            try python.tell("publish \(hexString(message.encoded()))")
        }
        try await python.says("received") { _ in python.said("received").count == 250 }
        var configuration = P2PRelay.Configuration(
            key: .generate(), peers: [address], catchUpTopics: [Self.contentTopic], lastSeen: [Self.topic: .now() - .seconds(30)])
        // Not by gossip.
        configuration.gossip.ihaveLimit = 0
        let node = RunningRelay(configuration)
        let wanted = missed
        try await eventually { Set(node.received.map(\.message)).isSuperset(of: wanted) }
        #expect(python.said("queried").count >= 3)
        await node.stop()
    }

    /// A peer whose metadata names another cluster is disconnected.
    @Test func anotherCluster() async throws {
        let python = try relay("/waku/2/rs/5/32")
        let address = try Multiaddr(try await python.says("address")[0])
        let node = RunningRelay(P2PRelay.Configuration(key: .generate(), peers: [address]))
        try await python.says("metadata") { $0 == ["16"] }
        try await eventually { node.relay.host.peers.isEmpty && node.relay.gossipPeers.isEmpty }
        await node.stop()
    }
}

/// Tests with go-libp2p's gossipsub, in `p2pd` of the wheel hivemind 1.1.12.
///
/// It sends authors even when it does not sign, and identifies messages by author and number: of messages without these, it accepts only the first.
@Suite(
    .enabled(if: OtherLibP2P.daemon != nil, "LIBP2P_P2PD names no go-libp2p daemon: see Deploy/test"), .serialized, .timeLimit(.minutes(5)))
struct GoGossipTests {
    private static let topic = PubsubTopic.statusDefault

    private func node(_ change: (inout P2PRelay.Configuration) -> Void) -> RunningRelay {
        var configuration = P2PRelay.Configuration(key: .generate())
        configuration.requiresMetadata = false
        configuration.gossip.refusesAuthors = false
        change(&configuration)
        return RunningRelay(configuration)
    }

    private func message(_ text: String) -> WakuMessage {
        WakuMessage(payload: Array(text.utf8), contentTopic: ContentTopic(TopicTag(of: "chat")), timestamp: .now())
    }

    private func relay(_ topic: String = topic.rawValue) throws -> PythonPeer { try PythonPeer("py_waku_relay.py", [topic]) }

    private func bothWays(_ node: RunningRelay, _ daemon: GoDaemon) async throws {
        try await eventually { node.relay.gossipPeers.contains { $0.status.meshes == [Self.topic.rawValue] } }
        let (ours, theirs) = (message("ours"), message("theirs"))
        try await node.relay.publish(ours, on: Self.topic)
        try await eventually { daemon.received == [ours.encoded()] }
        try await daemon.publish(theirs.encoded(), on: Self.topic.rawValue)
        try await eventually { node.received.map(\.message) == [theirs] }
        #expect(node.relay.counters.rejected == 0)
    }

    @Test func weDial() async throws {
        let daemon = try await GoDaemon(subscribingTo: Self.topic.rawValue)
        let node = node { $0.peers = [daemon.address] }
        try await bothWays(node, daemon)
        await node.stop()
    }

    @Test func theyDial() async throws {
        let loopback = try Multiaddr("/ip4/127.0.0.1/tcp/0")
        let node = node { $0.listenAddresses = [loopback] }
        let daemon = try await GoDaemon(subscribingTo: Self.topic.rawValue)
        try await daemon.connect(to: try await node.address())
        try await bothWays(node, daemon)
        await node.stop()
    }
}
