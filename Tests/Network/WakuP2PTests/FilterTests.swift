import TestSupport
import LibP2P
import Logging
import NIOCore
import Synchronization
import Testing
import Core
import Waku
import WakuCrypto

@testable import WakuP2P
@testable import WakuWireServer

@Suite("Filter client", .timeLimit(.minutes(5)))
struct FilterTests {
    private static let topic = PubsubTopic.statusDefault

    /// A filter node with lightpush.
    private final class FilterNode: Sendable {
        let key = PrivateKey.generate()
        let host: Host
        /// The status of its responses to subscribe requests; nil for a node without the filter protocol.
        private let code: UInt32?
        /// More subscriptions than this are refused as too frequent.
        private let subscriptionLimit: Int
        private let hasStore: Bool
        /// The status of its lightpush responses; nil for a node that reads requests and does not answer.
        private let pushCode: UInt32?
        let kinds = Log<FilterSubscribeRequest.Kind>()
        let subscribed = Log<ContentTopic>()
        let pushed = Log<WakuMessage>()
        let stall = Stall()
        let client = Mutex<PeerID?>(nil)
        private let topicLimit: Int
        private let pushText: String
        /// The subscribed topics. Like nwaku and go-waku, it counts all topics of a request towards the limit, also those that it has already.
        let topics = Mutex<Set<ContentTopic>>([])

        init(
            answering code: UInt32? = 200, subscriptionLimit: Int = .max, topicLimit: Int = 1000, hasStore: Bool = false,
            pushCode: UInt32? = 200, pushText: String = ""
        ) {
            host = Host(key: NodeKey(key), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            self.code = code
            self.subscriptionLimit = subscriptionLimit
            self.topicLimit = topicLimit
            self.hasStore = hasStore
            self.pushCode = pushCode
            self.pushText = pushText
        }

        func listen() async throws -> Multiaddr {
            host.serve(WakuProtocol.metadata) { stream in
                try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
            }
            if hasStore { host.serve(WakuProtocol.store) { $0.reset() } }
            guard let code else { return try await host.listen(on: try Multiaddr("/ip4/127.0.0.1/tcp/0")) }
            host.serve(WakuProtocol.filterSubscribe) { [kinds, subscribed, subscriptionLimit, weak self] stream in
                var reader = MessageReader(stream, limit: 1 << 16)
                guard let bytes = try await reader.next() else { return }
                let request = try FilterSubscribeRequest(parsing: Array(bytes.readableBytesView))
                self?.client.withLock { $0 = stream.peer }
                kinds.add([request.kind])
                let isTooOften = kinds.all.count { $0 == .subscribe } > subscriptionLimit
                if !isTooOften, request.kind == .subscribe { subscribed.add(request.contentTopics) }
                let isTooMuch = self?.take(request, isAccepted: code == 200 && !isTooOften) == false
                let status = WakuStatus(code: isTooOften ? 429 : isTooMuch ? 503 : code)
                let response = StatusResponse(requestID: request.requestID, status: status)
                try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
            }
            host.serve(WakuProtocol.lightpush) { [pushed, pushCode, pushText, stall] stream in
                var reader = MessageReader(stream, limit: 1 << 18)
                guard let bytes = try await reader.next() else { return }
                let request = try LightpushRequest(parsing: Array(bytes.readableBytesView))
                pushed.add([request.message])
                guard let pushCode else { return await stall.wait() }
                let response = StatusResponse(
                    requestID: request.requestID, status: WakuStatus(code: pushCode, text: pushText),
                    relayPeerCount: pushCode == 200 ? 1 : nil)
                try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
            }
            return try await host.listen(on: try Multiaddr("/ip4/127.0.0.1/tcp/0"))
        }

        /// - Returns: Whether it has room for the topics.
        private func take(_ request: FilterSubscribeRequest, isAccepted: Bool) -> Bool {
            topics.withLock { topics in
                guard isAccepted else { return true }
                switch request.kind {
                case .ping: break
                case .subscribe:
                    guard topics.count + Set(request.contentTopics).count <= topicLimit else { return false }
                    topics.formUnion(request.contentTopics)
                case .unsubscribe: topics.subtract(request.contentTopics)
                case .unsubscribeAll: topics = []
                }
                return true
            }
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

    @Test func watchedTopicsAreConfirmedOnceANodeAcceptedThem() async throws {
        let node = FilterNode()
        let address = try await node.listen()
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [address])
        configuration.contentTopics = { _ in [] }
        let relay = RunningRelay(configuration)
        for name in ["answer", "another answer"] {
            let topic = ContentTopic(TopicTag(of: name))
            try await relay.relay.confirmWatching([topic])
            #expect(node.subscribed.all.contains(topic))
        }
        await relay.stop()
        await node.host.close()
    }

    @Test("A client that asks more questions than a node takes topics gives up those that were answered")
    func unwatching() async throws {
        let node = FilterNode()
        let address = try await node.listen()
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [address])
        configuration.contentTopics = { _ in [] }
        configuration.filter.pace = .milliseconds(1)
        configuration.filter.checkPeriod = .milliseconds(5)
        configuration.filter.linger = .milliseconds(200)
        let relay = RunningRelay(configuration)
        let (questionCount, atOnce) = (1500, 100)
        for start in stride(from: 0, to: questionCount, by: atOnce) {
            let topics = (start..<start + atOnce).map { ContentTopic(TopicTag(of: "answer \($0)")) }
            try await relay.relay.confirmWatching(topics)
            // Once the answers arrived, no more are expected on their topics.
            let count = relay.received.count
            let answer = message(on: topics[0])
            try await node.send(answer)
            try await eventually { relay.received.count > count }
            relay.relay.unwatch(topics)
            #expect(relay.relay.lockedState.withLock { $0.watchedTopics.count + $0.droppedTopics.count } <= 1000)
        }
        #expect(node.subscribed.all.count >= questionCount && node.kinds.all.contains(.unsubscribe))
        #expect(relay.relay.state == .attached)
        // The last topics are unsubscribed as well, except one.
        try await eventually { node.topics.withLock(\.count) <= 2 }
        await relay.stop()
        await node.host.close()
    }

    @Test("Topics are subscribed 100 at a time and when added; pushes are received; lightpush publishes")
    func client() async throws {
        let node = FilterNode()
        let address = try await node.listen()
        let wanted = TopicTag(of: "later")
        let known = SharedTopics((0..<250).map { ContentTopic(TopicTag(of: "topic \($0)")) })
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [address])
        configuration.contentTopics = { Array(known.all.prefix($0)) }
        configuration.wants = { tag in known.all.contains(ContentTopic(tag)) }
        let relay = RunningRelay(configuration)
        try await eventually { node.subscribed.all.count == 250 }
        #expect(Set(node.subscribed.all) == Set(known.all))
        try await eventually { relay.relay.state == .attached }
        #expect(relay.relay.peers.map(\.isFilterNode) == [true] && relay.relay.gossipPeers.isEmpty)

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

    @Test func ofMoreTopicsThanANodeTakesTheLatestAreConfirmed() async throws {
        let node = FilterNode()
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [try await node.listen()])
        configuration.contentTopics = { _ in [] }
        let relay = RunningRelay(configuration)
        let topics = (0..<1500).map { ContentTopic(TopicTag(of: "contact \($0)")) }
        for _ in 0..<2 { try await relay.relay.confirmWatching(topics) }
        #expect(node.topics.withLock { $0 } == Set(topics.suffix(1000)))
        // The same topics again need no request.
        #expect(node.kinds.all.count { $0 == .subscribe } == 10 && !node.kinds.all.contains(.unsubscribe))
        await relay.stop()
        await node.host.close()
    }

    /// Each subscribe request repeats the own topics, which nodes count again. Those of a second protocol may be cut off the wanted topics.
    @Test func theTopicLimitHasRoomForTheOwnTopicsOfTheLastRequest() async throws {
        let node = FilterNode()
        let own = ["personal", "partitioned"].map { ContentTopic(TopicTag(of: $0)) }
        let others = (0..<1200).map { ContentTopic(TopicTag(of: "registrant \($0)")) }
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [try await node.listen()], catchUpTopics: own)
        configuration.contentTopics = { Array((own[..<1] + others + own[1...]).prefix($0)) }
        let relay = RunningRelay(configuration)
        try await eventually { node.topics.withLock(\.count) == 998 }
        try await eventually { relay.relay.state == .attached }
        let push = message(on: own[1])
        try await node.send(push)
        try await eventually { relay.received.map(\.message) == [push] }
        #expect(node.kinds.all.count { $0 == .subscribe } == 11 && node.kinds.all.count { $0 == .unsubscribeAll } == 1)
        await relay.stop()
        await node.host.close()
    }

    /// As a go-waku node without room for new clients does, also to its subscribers.
    @Test func aNodeWithoutRoomForFurtherTopicsKeepsTheSubscription() async throws {
        let node = FilterNode(topicLimit: 150)
        let own = ContentTopic(TopicTag(of: "own"))
        let others = (0..<200).map { ContentTopic(TopicTag(of: "registrant \($0)")) }
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [try await node.listen()], catchUpTopics: [own])
        configuration.contentTopics = { Array(([own] + others).prefix($0)) }
        let relay = RunningRelay(configuration)
        try await eventually { node.kinds.all.count >= 3 && relay.relay.state == .attached }
        let connection = try #require(node.host.connection(to: relay.relay.host.peerID))
        let push = message(on: own)
        try await node.send(push)
        try await eventually { relay.received.map(\.message) == [push] }
        #expect(Array(node.kinds.all.prefix(3)) == [.unsubscribeAll, .subscribe, .subscribe])
        #expect(node.host.connection(to: relay.relay.host.peerID) === connection && !node.kinds.all.dropFirst().contains(.unsubscribeAll))
        await relay.stop()
        await node.host.close()
    }

    @Test func aSecondRunReceivesPushesOnEarlierAndNewTopics() async throws {
        let node = FilterNode()
        let earlier = ContentTopic(TopicTag(of: "earlier"))
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [try await node.listen()])
        configuration.contentTopics = { _ in [earlier] }
        let relay = RunningRelay(configuration)
        try await eventually { relay.relay.state == .attached }
        await relay.endRun()
        try await relay.runAgain()
        let first = message(on: earlier)
        try await node.send(first)
        try await eventually { relay.received.map(\.message) == [first] }
        let new = ContentTopic(TopicTag(of: "new"))
        try await relay.relay.confirmWatching([new])
        let second = message(on: new)
        try await node.send(second)
        try await eventually { relay.received.map(\.message) == [first, second] }
        await relay.stop()
        await node.host.close()
    }

    private final class SharedTopics: Sendable {
        private let topics: Mutex<[ContentTopic]>
        init(_ topics: [ContentTopic]) { self.topics = Mutex(topics) }
        var all: [ContentTopic] { topics.withLock { $0 } }
        func add(_ topic: ContentTopic) { topics.withLock { $0.append(topic) } }
    }

    @Test("Pushes of peers without a subscription are refused")
    func stranger() async throws {
        var configuration = P2PRelay.Configuration(key: .generate(), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")])
        configuration.contentTopics = { _ in [] }
        let relay = RunningRelay(configuration)
        let node = FilterNode()
        _ = try await node.listen()
        try await node.host.connect(to: try await relay.address())
        node.client.withLock { $0 = relay.relay.host.peerID }
        let stream = try await node.host.openStream(to: relay.relay.host.peerID, [WakuProtocol.filterPush])
        let push = FilterPush(message: ReceivedMessage(message: message(on: ContentTopic(TopicTag(of: "a"))), pubsubTopic: Self.topic))
        // The stream may already be closed.
        try? await stream.writeMessage(ByteBuffer(bytes: push.encoded()))
        try await eventually { stream.isClosed }
        #expect(relay.received.isEmpty)
        await relay.stop()
        await node.host.close()
    }

    @Test("Old subscriptions are removed first; rate limits are respected; malformed pushes are ignored")
    func oldSubscriptionsRateLimitsAndMalformedPushes() async throws {
        let node = FilterNode(subscriptionLimit: 1)
        let topics = (0..<150).map { ContentTopic(TopicTag(of: "topic \($0)")) }
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [try await node.listen()])
        configuration.contentTopics = { Array(topics.prefix($0)) }
        let relay = RunningRelay(configuration)
        try await eventually { node.kinds.all.count == 3 }
        #expect(node.kinds.all == [.unsubscribeAll, .subscribe, .subscribe])
        try await eventually { relay.relay.workingPeers == [node.host.peerID] }
        let connection = try #require(node.host.connection(to: relay.relay.host.peerID))

        let stream = try await node.host.openStream(to: relay.relay.host.peerID, [WakuProtocol.filterPush])
        let ours = message(on: topics[0])
        for bytes in [[0xFF, 0xFF], [], FilterPush(message: ReceivedMessage(message: ours, pubsubTopic: Self.topic)).encoded()] as [[UInt8]]
        {
            try await stream.writeMessage(ByteBuffer(bytes: bytes))
        }
        try await eventually { relay.received.map(\.message) == [ours] }
        #expect(!stream.isClosed)
        #expect(node.subscribed.all == Array(topics.prefix(100)))
        #expect(node.host.connection(to: relay.relay.host.peerID) === connection)
        await relay.stop()
        await node.host.close()
    }

    @Test("A node that refuses the topics is not a working peer")
    func refusal() async throws {
        let node = FilterNode(answering: 503)
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [try await node.listen()])
        configuration.contentTopics = { _ in [ContentTopic(TopicTag(of: "a"))] }
        let relay = RunningRelay(configuration)
        // The node is dialed and subscribed at again.
        try await eventually { node.subscribed.all.count >= 2 }
        #expect(relay.relay.state != .attached)
        #expect(relay.reported.isEmpty)
        await relay.stop()
        await node.host.close()
    }

    /// A DNS server with a list of these nodes.
    private struct ListServer {
        let url: String
        let server: DNSServer

        /// The configuration of a client that wants three of the nodes, and knows them only from the list.
        var configuration: P2PRelay.Configuration {
            get throws {
                var configuration = P2PRelay.Configuration(key: .generate())
                configuration.nodeLists = [try NodeTreeURL(parsing: url)]
                configuration.dns = server.client
                configuration.contentTopics = { _ in [ContentTopic(TopicTag(of: "a"))] }
                configuration.peerTarget = 3
                configuration.peerTrial = .seconds(2)
                return configuration
            }
        }
    }

    private func list(_ nodes: [FilterNode]) async throws -> ListServer {
        var tree = Tree(domain: "nodes.test")
        var texts: [String] = []
        for node in nodes {
            texts.append(PeerFinderTests.text(of: node.key, port: try #require(try await node.listen().endpoint?.port)))
        }
        tree.sign(nodes: texts, links: [])
        return ListServer(url: tree.url, server: try await DNSServer(tree.zone))
    }

    @Test("Lightpush uses two nodes, and further ones when nodes refuse")
    func severalPublishers() async throws {
        let willing = [FilterNode(), FilterNode()]
        let refusing = [FilterNode(pushCode: 413), FilterNode(pushCode: 503)]
        var addresses: [Multiaddr] = []
        for node in willing + refusing { addresses.append(try await node.listen()) }
        var configuration = P2PRelay.Configuration(key: .generate(), peers: addresses)
        configuration.contentTopics = { _ in [ContentTopic(TopicTag(of: "a"))] }
        let relay = RunningRelay(configuration)
        try await eventually { relay.relay.peers(speaking: WakuProtocol.lightpush).count == 4 }
        let answers = (0..<10).map { WakuMessage(payload: [1, $0], contentTopic: ContentTopic(TopicTag(of: "b")), timestamp: .now()) }
        for answer in answers { #expect(try await relay.relay.publish(answer, on: Self.topic) == .confirmed) }
        // The second node may get a message after the first has confirmed it, and the next one was published.
        for node in willing { try await eventually { Set(node.pushed.all) == Set(answers) } }
        for node in willing { await node.host.close() }
        try await eventually { relay.relay.peers(speaking: WakuProtocol.lightpush).count == 2 }
        // The second node may accept it later: another attempt is worthwhile.
        let error = await #expect(throws: RelayError.self) { try await relay.relay.publish(answers[0], on: Self.topic) }
        #expect(error?.code == .unavailable)
        await relay.stop()
        for node in refusing { await node.host.close() }
    }

    /// As after a time-out in which the nodes relayed it, or when a node has it from another that was asked at the same time.
    @Test func aMessageThatLightpushNodesHaveAlreadyIsPublished() async throws {
        let nodes = [FilterNode(pushCode: 420, pushText: "Dropping already-seen message"), FilterNode(pushCode: 420, pushText: "invalid")]
        for (node, isSeen) in zip(nodes, [true, false]) {
            var configuration = P2PRelay.Configuration(key: .generate(), peers: [try await node.listen()])
            configuration.contentTopics = { _ in [ContentTopic(TopicTag(of: "a"))] }
            let relay = RunningRelay(configuration)
            try await eventually { !relay.relay.peers(speaking: WakuProtocol.lightpush).isEmpty }
            let answer = message(on: ContentTopic(TopicTag(of: "b")))
            if isSeen {
                #expect(try await relay.relay.publish(answer, on: Self.topic) == .unconfirmed(canBeLookedUp: false))
            } else {
                let error = await #expect(throws: RelayError.self) { try await relay.relay.publish(answer, on: Self.topic) }
                #expect(error?.code == .refused)
            }
            #expect(node.pushed.all == [answer])
            await relay.stop()
            await node.host.close()
        }
    }

    @Test("Publishing does not wait for a lightpush node that does not answer")
    func silentPublisher() async throws {
        let (willing, silent) = (FilterNode(), FilterNode(pushCode: nil))
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [try await willing.listen(), try await silent.listen()])
        configuration.contentTopics = { _ in [ContentTopic(TopicTag(of: "a"))] }
        let relay = RunningRelay(configuration)
        try await eventually { relay.relay.peers(speaking: WakuProtocol.lightpush).count == 2 }
        let answers = (0..<8).map { WakuMessage(payload: [1, $0], contentTopic: ContentTopic(TopicTag(of: "b")), timestamp: .now()) }
        let start = ContinuousClock.now
        for answer in answers { #expect(try await relay.relay.publish(answer, on: Self.topic) == .confirmed) }
        // Each request to the silent node ends after 2.5 s.
        #expect(start.duration(to: .now) < .seconds(10))
        #expect(willing.pushed.all == answers)
        silent.stall.end()
        await relay.stop()
        for node in [willing, silent] { await node.host.close() }
    }

    @Test("Nodes from a list are kept up to the target; those that are not filter nodes are disconnected")
    func list() async throws {
        let nodes = [FilterNode(), FilterNode(), FilterNode(answering: nil)]
        let server = try await list(nodes)
        var configuration = try server.configuration
        // All are dialed, and the third is unsuitable.
        let wanting = RunningRelay(configuration)
        let filterNodes = Set(nodes[..<2].map(\.host.peerID))
        try await eventually { !nodes[2].host.peers.isEmpty }
        try await eventually {
            wanting.relay.workingPeers == filterNodes && Set(wanting.relay.host.peers.map(\.connection.peer)) == filterNodes
        }
        await wanting.stop()

        configuration.key = .generate()
        configuration.peerTarget = 1
        configuration.peerTrial = .milliseconds(500)
        let content = RunningRelay(configuration)
        try await eventually { content.relay.workingPeers.count == 1 && !content.relay.lockedState.withLock(\.finder.isDialing) }
        #expect(content.relay.nodesToDial().isEmpty)
        await content.stop()
        for node in nodes { await node.host.close() }
    }

    @Test("Nodes with only a store are kept while there are few")
    func stores() async throws {
        let nodes = (0..<3).map { _ in FilterNode(answering: nil, hasStore: true) }
        let server = try await list(nodes)
        let configuration = try server.configuration
        let relay = RunningRelay(configuration)
        try await eventually { !nodes.contains { $0.host.peers.isEmpty } }
        try await eventually { relay.relay.host.peers.count == 2 && !relay.relay.lockedState.withLock(\.finder.isDialing) }
        #expect(relay.relay.hasStore && relay.relay.workingPeers.isEmpty)
        await relay.stop()
        for node in nodes { await node.host.close() }
    }
}
