import LibP2P
import Logging
import NIOCore
import Synchronization
import TestSupport
import Testing
import Core
import Waku

@testable import WakuP2P
@testable import WakuWireServer

/// A filter node that forgets its client, as go-waku does each minute: missed messages come from its store.
@Suite(.timeLimit(.minutes(5)))
struct ForgettingNodeTests {
    private static let topic = PubsubTopic.statusDefault
    private let own = [ContentTopic(TopicTag(of: "personal")), ContentTopic(TopicTag(of: "partitioned"))]
    private let registrants = (0..<150).map { ContentTopic(TopicTag(of: "registrant \($0)")) }

    /// Serves filter and store over sockets, and stores published messages.
    private final class Node: Sendable {
        private struct State {
            var client: PeerID?
            var topics: Set<ContentTopic> = []
            var kept: [ReceivedMessage] = []
            var subscriptionCount = 0
            var refusedStoreQueries = 0
            var refusedPings = 0
        }

        let host = Host(key: .generate(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        private let state = Mutex(State())

        func listen() async throws -> Multiaddr {
            host.serve(WakuProtocol.metadata) { stream in
                try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
            }
            host.serve(WakuProtocol.filterSubscribe) { [weak self] stream in
                var reader = MessageReader(stream, limit: 1 << 16)
                guard let self, let bytes = try await reader.next() else { return }
                let request = try FilterSubscribeRequest(parsing: Array(bytes.readableBytesView))
                let response = StatusResponse(
                    requestID: request.requestID, status: WakuStatus(code: code(for: request, of: stream.peer)))
                try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
            }
            host.serve(WakuProtocol.store) { [weak self] stream in
                var reader = MessageReader(stream, limit: 1 << 16)
                guard let self, let bytes = try await reader.next() else { return }
                let response = answer(try StoreRequest(parsing: Array(bytes.readableBytesView)))
                try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
            }
            return try await host.listen(on: try Multiaddr("/ip4/127.0.0.1/tcp/0"))
        }

        private func code(for request: FilterSubscribeRequest, of peer: PeerID) -> UInt32 {
            state.withLock { state in
                switch request.kind {
                case .ping:
                    if state.refusedPings > 0 {
                        state.refusedPings -= 1
                        return 429
                    }
                    return state.topics.isEmpty ? 404 : 200
                case .subscribe:
                    state.client = peer
                    state.subscriptionCount += 1
                    state.topics.formUnion(request.contentTopics)
                case .unsubscribe: state.topics.subtract(request.contentTopics)
                case .unsubscribeAll: state.topics = []
                }
                return 200
            }
        }

        private func answer(_ request: StoreRequest) -> StoreResponse {
            state.withLock { state in
                if state.refusedStoreQueries > 0 {
                    state.refusedStoreQueries -= 1
                    return StoreResponse(requestID: request.requestID, status: WakuStatus(code: 429))
                }
                let start = request.startTime ?? Timestamp(rawValue: 0)
                let matching = state.kept.filter {
                    request.contentTopics.contains($0.message.contentTopic) && $0.message.timestamp >= start
                }
                let first = request.cursor.flatMap { cursor in matching.firstIndex { $0.hash.bytes == cursor } }.map { $0 + 1 } ?? 0
                let page = matching[first...].prefix(Int(min(request.pageSize ?? 20, 20)))
                return StoreResponse(
                    requestID: request.requestID, status: WakuStatus(code: 200),
                    entries: page.map { .init(hash: $0.hash, message: $0) },
                    cursor: page.endIndex < matching.endIndex ? page.last?.hash.bytes : nil)
            }
        }

        var isSubscribed: Bool { state.withLock { !$0.topics.isEmpty } }
        var topics: Set<ContentTopic> { state.withLock(\.topics) }
        var subscriptionCount: Int { state.withLock(\.subscriptionCount) }

        func forget() { state.withLock { $0.topics = [] } }
        func refuse(pings: Int = 0, storeQueries: Int = 0) {
            state.withLock {
                $0.refusedPings = pings
                $0.refusedStoreQueries = storeQueries
            }
        }

        /// Stores the message, and sends it to the client unless it has forgotten the client.
        func publish(_ message: WakuMessage) async throws {
            let received = ReceivedMessage(message: message, pubsubTopic: ForgettingNodeTests.topic)
            let client = state.withLock { state in
                state.kept.append(received)
                return state.topics.contains(message.contentTopic) ? state.client : nil
            }
            guard let client else { return }
            let stream = try await host.openStream(to: client, [WakuProtocol.filterPush])
            try await stream.writeMessage(ByteBuffer(bytes: FilterPush(message: received).encoded()))
            stream.close()
        }
    }

    /// - Parameter registrantCount: A few topics fit into one request; with more, earlier messages are looked up in any case.
    private func relay(
        of address: Multiaddr, registrantCount: Int = 20, pingPeriod: Duration = .milliseconds(100)
    ) -> RunningRelay {
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [address], catchUpTopics: own)
        let topics = own + registrants[..<registrantCount]
        configuration.contentTopics = { Array(topics.prefix($0)) }
        configuration.filter = FilterTiming(
            pingPeriod: pingPeriod, checkPeriod: .milliseconds(20), pace: .milliseconds(1), rest: .milliseconds(20), allowance: .seconds(1))
        // Far longer than needed on a slow machine.
        configuration.lookBackWindow = .seconds(120)
        configuration.catchUpSettling = .milliseconds(50)
        configuration.catchUpPeriod = .milliseconds(100)
        return RunningRelay(configuration)
    }

    private func message(_ number: Int, on topic: ContentTopic, at time: Timestamp = .now()) -> WakuMessage {
        WakuMessage(payload: withUnsafeBytes(of: number.bigEndian, Array.init) + [1], contentTopic: topic, timestamp: time)
    }

    /// Messages before and after each time that the node forgets, at random; sometimes its store's rate limit is exceeded.
    @Test(arguments: 1...3 as ClosedRange<UInt64>) func noRegistrationOrRequestIsLost(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let node = Node()
        let relay = relay(of: try await node.listen())
        let all = Set(own + registrants[..<20])
        try await eventually { node.topics == all }
        var published: Set<WakuMessage> = []
        for round in 0..<20 {
            for forgets in [false, true] {
                if forgets { node.forget() }
                for _ in 0..<Int.random(in: 0...4, using: &random) {
                    let message = message(published.count, on: own[Int.random(in: 0...1, using: &random)])
                    published.insert(message)
                    try await node.publish(message)
                }
            }
            if round == 10 { node.refuse(pings: 3, storeQueries: 2) }
            try await eventually { node.topics == all }
        }
        let expected = published
        try await eventually { expected.isSubset(of: relay.received.map(\.message)) }
        #expect(Set(relay.received.map(\.message)) == expected)
        #expect(relay.reported.contains(.gap))
        try await eventually { relay.relay.seenUntil[Self.topic].map { $0 > .now() - .seconds(5) } ?? false }
        await relay.stop()
        await node.host.close()
    }

    @Test func theLastQueriesAreLookedUp() async throws {
        let node = Node()
        let relay = relay(of: try await node.listen(), registrantCount: 150)
        let all = Set(own + registrants)
        try await eventually { node.topics == all }
        node.forget()
        // Sent before the client subscribes again.
        let queries = [0, 77, 149].map { message($0, on: registrants[$0]) }
        for query in queries { try await node.publish(query) }
        try await eventually { Set(relay.received.map(\.message)) == Set(queries) }
        #expect(relay.reported.contains { if case .recovered = $0 { true } else { false } })
        await relay.stop()
        await node.host.close()
    }

    @Test func aConnectionThatBreaksIsCaughtUp() async throws {
        let node = Node()
        let relay = relay(of: try await node.listen(), pingPeriod: .seconds(3600))
        try await eventually { relay.relay.state == .attached }
        node.forget()
        let lost = message(1, on: own[0])
        try await node.publish(lost)
        node.host.disconnect(relay.relay.host.peerID)
        try await eventually { relay.received.map(\.message) == [lost] }
        await relay.stop()
        await node.host.close()
    }
}
