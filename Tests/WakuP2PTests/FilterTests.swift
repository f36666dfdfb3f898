import LibP2P
import Logging
import NIOCore
import Synchronization
import Testing
import Waku

@testable import WakuP2P

@Suite("As a client of filter nodes", .timeLimit(.minutes(5)))
struct FilterTests {
    private static let topic = PubsubTopic.statusDefault

    /// A filter node with lightpush.
    private final class FilterNode: Sendable {
        let host = Host(key: .generate(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let subscribed = Log<ContentTopic>()
        let pushed = Log<WakuMessage>()
        let client = Mutex<PeerID?>(nil)

        func listen() async throws -> Multiaddr {
            host.serve(WakuProtocol.metadata) { stream in
                try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
            }
            host.serve(WakuProtocol.filterSubscribe) { [subscribed] stream in
                var reader = MessageReader(stream, limit: 1 << 16)
                guard let bytes = try await reader.next() else { return }
                let request = try FilterSubscribeRequest(parsing: Array(bytes.readableBytesView))
                subscribed.add(request.contentTopics)
                self.client.withLock { $0 = stream.peer }
                let response = FilterSubscribeResponse(requestID: request.requestID, status: WakuStatus(code: 200))
                try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
            }
            host.serve(WakuProtocol.lightpush) { [pushed] stream in
                var reader = MessageReader(stream, limit: 1 << 18)
                guard let bytes = try await reader.next() else { return }
                let request = try LightpushRequest(parsing: Array(bytes.readableBytesView))
                pushed.add([request.message])
                let response = LightpushResponse(requestID: request.requestID, status: WakuStatus(code: 200), relayPeerCount: 1)
                try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
            }
            return try await host.listen(on: try Multiaddr("/ip4/127.0.0.1/tcp/0"))
        }

        func send(_ message: WakuMessage) async throws {
            let client = try #require(client.withLock { $0 })
            let stream = try await host.openStream(to: client, [WakuProtocol.filterPush])
            let push = FilterPush(message: ReceivedMessage(message: message, pubsubTopic: FilterTests.topic))
            try await stream.writeMessage(ByteBuffer(bytes: push.encoded()))
            stream.close()
        }
    }

    private func message(on topic: ContentTopic) -> WakuMessage {
        WakuMessage(payload: [1, 2, 3], contentTopic: topic, timestamp: .now())
    }

    @Test("Topics are told, 100 at a time and new ones later; what is sent for them comes in; answers go out by lightpush")
    func client() async throws {
        let node = FilterNode()
        let address = try await node.listen()
        let wanted = TopicTag(of: "later")
        let known = SharedTopics((0..<250).map { ContentTopic(TopicTag(of: "topic \($0)")) })
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [address])
        configuration.contentTopics = { known.all }
        configuration.wants = { tag in known.all.contains(ContentTopic(tag)) }
        let relay = RunningRelay(configuration)
        try await eventually { node.subscribed.all.count == 250 }
        #expect(Set(node.subscribed.all) == Set(known.all))
        try await eventually { relay.relay.state == .attached }
        #expect(relay.relay.host.peers.first != nil && relay.relay.gossipPeers.isEmpty)

        let (ours, unasked) = (message(on: known.all[0]), message(on: ContentTopic(TopicTag(of: "another"))))
        try await node.send(unasked)
        try await node.send(ours)
        try await eventually { relay.received.map(\.message) == [ours] }

        known.add(ContentTopic(wanted))
        try await eventually { node.subscribed.all.count == 251 }
        let later = message(on: ContentTopic(wanted))
        try await node.send(later)
        try await eventually { relay.received.map(\.message) == [ours, later] }

        try await eventually { relay.relay.host.peers.first?.info != nil }
        let answer = message(on: known.all[1])
        #expect(try await relay.relay.publish(answer, on: Self.topic) == .confirmed)
        #expect(node.pushed.all == [answer])
        await relay.stop()
        await node.host.close()
    }

    private final class SharedTopics: Sendable {
        private let topics: Mutex<[ContentTopic]>
        init(_ topics: [ContentTopic]) { self.topics = Mutex(topics) }
        var all: [ContentTopic] { topics.withLock { $0 } }
        func add(_ topic: ContentTopic) { topics.withLock { $0.append(topic) } }
    }

    @Test("Who was not asked sends nothing")
    func stranger() async throws {
        var configuration = P2PRelay.Configuration(key: .generate(), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")])
        configuration.contentTopics = { [] }
        let relay = RunningRelay(configuration)
        let node = FilterNode()
        _ = try await node.listen()
        try await node.host.connect(to: try await relay.address())
        node.client.withLock { $0 = relay.relay.host.peerID }
        let stream = try await node.host.openStream(to: relay.relay.host.peerID, [WakuProtocol.filterPush])
        let push = FilterPush(message: ReceivedMessage(message: message(on: ContentTopic(TopicTag(of: "a"))), pubsubTopic: Self.topic))
        try await stream.writeMessage(ByteBuffer(bytes: push.encoded()))
        try await eventually { stream.isClosed }
        #expect(relay.received.isEmpty)
        await relay.stop()
        await node.host.close()
    }
}
