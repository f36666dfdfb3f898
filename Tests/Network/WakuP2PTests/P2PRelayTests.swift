import TestSupport
import GossipSub
import Logging
import NIOCore
import Synchronization
import Testing
import Core
import Waku

@testable import LibP2P
@testable import WakuP2P
@testable import WakuWireServer

/// A running relay, and the messages it delivered.
final class RunningRelay: Sendable {
    let relay: P2PRelay
    private let messages: Log<ReceivedMessage>
    private let events: Log<RelayEvent>
    private let task: Mutex<Task<Void, Never>>

    init(_ configuration: P2PRelay.Configuration, logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) {
        let (messages, events) = (Log<ReceivedMessage>(), Log<RelayEvent>())
        var configuration = configuration
        configuration.report = { events.add([$0]) }
        let relay = P2PRelay(configuration: configuration, logger: logger)
        (self.relay, self.messages, self.events) = (relay, messages, events)
        task = Mutex(Task { await relay.run { messages.add($0) } })
    }

    var received: [ReceivedMessage] { messages.all }
    var reported: [RelayEvent] { events.all }

    func stop() async {
        await endRun()
        await relay.close()
    }

    /// Leaves the relay open.
    func endRun() async {
        let task = task.withLock { $0 }
        task.cancel()
        await task.value
    }

    /// Returns when messages are delivered again.
    func runAgain() async throws {
        task.withLock { $0 = Task { [relay, messages] in await relay.run { messages.add($0) } } }
        try await eventually { self.relay.inbox.isEmpty }
    }

    /// The listen address with its port.
    func address() async throws -> Multiaddr {
        try await eventually { !self.relay.listenAddresses.isEmpty }
        return try #require(relay.listenAddresses.first)
    }
}

final class Log<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])
    func add(_ new: [Element]) { elements.withLock { $0 += new } }
    var all: [Element] { elements.withLock { $0 } }
}

@Suite("The relay over loopback sockets", .timeLimit(.minutes(5)))
struct P2PRelayTests {
    private static let topic = PubsubTopic.statusDefault
    private static let contentTopic = ContentTopic(TopicTag(of: "chat"))

    private func message(_ number: UInt8, at time: Timestamp = .now()) -> WakuMessage {
        WakuMessage(payload: [number, 1, 2, 3], contentTopic: Self.contentTopic, timestamp: time)
    }

    private static let loopback = "/ip4/127.0.0.1/tcp/0"

    private func listening(_ change: (inout P2PRelay.Configuration) -> Void = { _ in }) throws -> RunningRelay {
        var configuration = P2PRelay.Configuration(key: .generate(), listenAddresses: [try Multiaddr(Self.loopback)])
        change(&configuration)
        return RunningRelay(configuration)
    }

    private func dialing(_ addresses: Multiaddr..., change: (inout P2PRelay.Configuration) -> Void = { _ in }) -> RunningRelay {
        var configuration = P2PRelay.Configuration(key: .generate(), peers: addresses)
        change(&configuration)
        return RunningRelay(configuration)
    }

    @Test("Two nodes receive each other's messages")
    func twoNodes() async throws {
        let one = try listening()
        let two = dialing(try await one.address())
        try await eventually { one.relay.state == .attached && two.relay.state == .attached }
        let (first, second) = (message(1), message(2))
        #expect(try await two.relay.publish(first, on: Self.topic) == .confirmed)
        #expect(try await one.relay.publish(second, on: Self.topic) == .confirmed)
        try await eventually { one.received.count == 1 && two.received.count == 1 }
        #expect(one.received == [ReceivedMessage(message: first, pubsubTopic: Self.topic)])
        #expect(two.received == [ReceivedMessage(message: second, pubsubTopic: Self.topic)])
        #expect(try await two.relay.publish(first, on: Self.topic) == .confirmed)
        #expect(two.relay.seenUntil[Self.topic] != nil)
        await two.stop()
        await one.stop()
        #expect(one.received.count == 1)
    }

    /// The only peer of `late` has no place left in its mesh.
    @Test func aNodeOutsideOfItsPeersMeshIsAttachedAndExchangesMessages() async throws {
        let hub = try listening {
            ($0.gossip.meshLow, $0.gossip.meshSize, $0.gossip.meshHigh, $0.gossip.meshBest, $0.gossip.meshOutbound) = (1, 1, 1, 1, 0)
            $0.gossip.heartbeat = .milliseconds(200)
        }
        let address = try await hub.address()
        let first = dialing(address)
        try await eventually { hub.relay.gossipPeers.contains { !$0.status.meshes.isEmpty } }
        let log = RecordedLog()
        var configuration = P2PRelay.Configuration(key: .generate(), peers: [address])
        configuration.gossip.heartbeat = .milliseconds(10)
        let late = RunningRelay(configuration, logger: log.logger)
        try await late.relay.confirmWatching([])
        for number in 0..<3 as Range<UInt8> {
            let (question, answer) = (message(2 * number), message(2 * number + 1))
            #expect(try await late.relay.publish(question, on: Self.topic) == .confirmed)
            try await eventually { first.received.contains { $0.message == question } }
            // Announced by the peer, of which each heartbeat is some of this node's.
            try await first.relay.publish(answer, on: Self.topic)
            try await eventually { late.received.contains { $0.message == answer } }
        }
        #expect(late.relay.state == .attached && !log.contains("relay detached"))
        #expect(late.relay.gossipPeers.map(\.status.meshes) == [[]])
        await late.stop()
        await first.stop()
        await hub.stop()
    }

    @Test func messagesPublishedBeforeACloseArrive() async throws {
        let one = try listening()
        let two = dialing(try await one.address()) { $0.closeLimit = .seconds(60) }
        try await eventually { one.relay.state == .attached && two.relay.state == .attached }
        let messages = (0..<20 as Range<UInt8>).map { number in
            var large = message(number)
            large.payload += [UInt8](repeating: number, count: 100_000)
            return large
        }
        for message in messages { #expect(try await two.relay.publish(message, on: Self.topic) == .confirmed) }
        await two.stop()
        try await eventually { Set(one.received.map(\.message)) == Set(messages) }
        await one.stop()
    }

    @Test func closingDoesNotWaitForAPeerThatReadsNothing() async throws {
        let one = try listening {
            $0.requiresMetadata = false
            $0.closeLimit = .milliseconds(10)
        }
        let (deaf, stall) = (Host(key: .generate()), Stall())
        deaf.serve("/meshsub/1.1.0") { _ in await stall.wait() }
        try await deaf.connect(to: try await one.address())
        let stream = try await deaf.openStream(to: one.relay.host.peerID, ["/meshsub/1.1.0"])
        let topic = Array(Self.topic.rawValue.utf8)
        let subscription = [0x08, 0x01, 0x12, UInt8(topic.count)] + topic
        try await stream.writeMessage(ByteBuffer(bytes: [0x0A, UInt8(subscription.count)] + subscription))
        try await eventually { one.relay.gossipPeers.contains { !$0.status.topics.isEmpty } }
        var large = message(1)
        large.payload += [UInt8](repeating: 1, count: 100_000)
        for number in 0..<8 as Range<UInt8> {
            large.payload[0] = number
            try await one.relay.publish(large, on: Self.topic)
        }
        // The peer's window has no room for all of them.
        #expect(one.relay.queuedByteCount > 0)
        await one.stop()
        stall.end()
        await deaf.close()
    }

    @Test(arguments: [false, true]) func nothingIsPublishedByAClosedRelay(isFilterClient: Bool) async throws {
        let one = try listening()
        let two = dialing(try await one.address()) { if isFilterClient { $0.contentTopics = { _ in [] } } }
        if !isFilterClient { try await eventually { two.relay.state == .attached } }
        await two.stop()
        #expect(two.relay.state == .detached("the relay was closed"))
        let error = RelayError(code: .unavailable, message: "the relay was closed: make a new one")
        await #expect(throws: error) { try await two.relay.publish(message(1), on: Self.topic) }
        await #expect(throws: error) { try await two.relay.confirmWatching([Self.contentTopic]) }
        await #expect(throws: error) { try await RelaySet([two.relay]).publish(message(1), on: Self.topic) }
        await one.stop()
    }

    @Test func aSecondRunDeliversMessagesAndThoseMissedSinceTheFirst() async throws {
        let one = try listening()
        let between = message(1)
        serveStore(on: one.relay.host, [ReceivedMessage(message: between, pubsubTopic: Self.topic)])
        let two = dialing(try await one.address()) { $0.catchUpTopics = [Self.contentTopic] }
        try await eventually { one.relay.state == .attached && two.relay.state == .attached }
        await two.endRun()
        let seen = try #require(two.relay.seenUntil[Self.topic])
        try await one.relay.publish(between, on: Self.topic)
        try await eventually { two.relay.counters.accepted == 1 }
        #expect(two.received.isEmpty)
        try await two.runAgain()
        try await eventually { two.received.map(\.message) == [between] }
        #expect(two.reported.contains(.gap) && two.reported.contains(.recovered(1)))
        let after = message(2)
        try await one.relay.publish(after, on: Self.topic)
        try await eventually { two.received.map(\.message) == [between, after] }
        try await eventually { two.relay.seenUntil[Self.topic].map { $0 > seen } ?? false }
        await two.stop()
        await one.stop()
    }

    @Test func aRunWaitsForTheEndOfAnother() async throws {
        let log = RecordedLog()
        let one = try listening()
        let two = RunningRelay(P2PRelay.Configuration(key: .generate(), peers: [try await one.address()]), logger: log.logger)
        try await eventually { one.relay.state == .attached && two.relay.state == .attached }
        let others = Log<ReceivedMessage>()
        let another = Task { await two.relay.run { others.add($0) } }
        try await eventually { log.contains("relay in use") }
        let messages = (0..<20 as Range<UInt8>).map { message($0) }
        for message in messages { try await one.relay.publish(message, on: Self.topic) }
        try await eventually { two.received.count == messages.count }
        #expect(others.all.isEmpty)
        await two.endRun()
        try await eventually { two.relay.inbox.isEmpty }
        let last = message(20)
        try await one.relay.publish(last, on: Self.topic)
        try await eventually { others.all.map(\.message) == [last] }
        #expect(two.received.count == messages.count)
        another.cancel()
        await another.value
        await two.stop()
        await one.stop()
    }

    @Test("Configured peers that are not connected, and pubsub topics without peers, are named")
    func detachedParts() async throws {
        let one = try listening()
        let missing = try Multiaddr("/ip4/127.0.0.1/tcp/1/p2p/\(NodeKey.generate().peerID)")
        let silent = PubsubTopic(rawValue: "/waku/2/rs/16/64")
        let two = dialing(try await one.address(), missing) { $0.pubsubTopics.append(silent) }
        try await eventually { two.relay.state == .attached }
        #expect(two.relay.detachedRelays == [missing.description, silent.rawValue])
        #expect(one.relay.detachedRelays == [])
        await one.stop()
        // The connected peer is lost, too.
        try await eventually { two.relay.detachedRelays.count == 4 }
        await two.stop()
    }

    @Test("The disconnection of a peer that misbehaves is logged with its address and score")
    func misbehaviour() async throws {
        let log = RecordedLog()
        var configuration = P2PRelay.Configuration(key: .generate(), listenAddresses: [try Multiaddr(Self.loopback)])
        configuration.requiresMetadata = false
        let one = RunningRelay(configuration, logger: log.logger)
        let address = try await one.address()
        let host = Host(key: .generate())
        try await host.connect(to: address)
        let stream = try await host.openStream(to: one.relay.host.peerID, ["/meshsub/1.1.0"])
        try await stream.writeMessage(ByteBuffer(bytes: [0xFF, 0xFF]))
        try await eventually { one.relay.host.connection(to: host.peerID) == nil && log.contains("misbehaviour") }
        let line = try #require(log.lines.first { $0.contains("misbehaviour") })
        #expect(line.hasPrefix("info peer disconnected: misbehaviour address=/ip4/127.0.0.1/tcp/"))
        #expect(line.contains("peer=\(host.peerID)") && line.contains("score=-"))
        await host.close()
        await one.stop()
    }

    @Test("An idle peer is evicted for a new one, a mesh peer is not")
    func eviction() async throws {
        let one = try listening {
            $0.host.inboundLimit = 2
            $0.requiresMetadata = false
        }
        let address = try await one.address()
        // The first peer to connect, which would be the longest idle one if it were idle.
        let two = dialing(address) { $0.requiresMetadata = false }
        try await eventually { one.relay.host.state.withLock { $0.inbound.neededCount } == 1 }
        let (idle, new) = (Host(key: .generate()), Host(key: .generate()))
        try await idle.connect(to: address)
        try await eventually { one.relay.host.peers.count == 2 }
        let events = one.relay.host.events()
        try await new.connect(to: address)
        var gone: PeerID?
        for await event in events {
            guard case .disconnected(let peer, _) = event else { continue }
            gone = peer
            break
        }
        #expect(gone == idle.peerID)
        #expect(one.relay.host.connection(to: two.relay.host.peerID) != nil)
        for host in [idle, new] { await host.close() }
        await two.stop()
        await one.stop()
    }

    @Test("The middle one of three nodes forwards messages")
    func line() async throws {
        let middle = try listening()
        let address = try await middle.address()
        let (left, right) = (dialing(address), dialing(address))
        try await eventually { middle.relay.gossipPeers.count { !$0.status.meshes.isEmpty } == 2 }
        try await eventually { left.relay.state == .attached && right.relay.state == .attached }
        let messages = (0..<500).map { number in
            WakuMessage(
                payload: [UInt8(number & 255), UInt8(number >> 8)] + [UInt8](repeating: 7, count: 1000), contentTopic: Self.contentTopic,
                timestamp: .now())
        }
        for message in messages { try await left.relay.publish(message, on: Self.topic) }
        try await eventually { right.received.count == 500 && middle.received.count == 500 }
        #expect(Set(right.received.map(\.message)) == Set(messages))
        #expect(left.received.isEmpty)
        for node in [left, right, middle] { await node.stop() }
    }

    @Test("A peer of another cluster is disconnected, one of the same cluster is not")
    func clusters() async throws {
        let one = try listening { $0.clusterID = 1 }
        let address = try await one.address()
        let events = one.relay.host.events()
        let other = dialing(address)
        var wasConnected = false
        for await event in events {
            if case .connected(let connection) = event, connection.peer == other.relay.host.peerID { wasConnected = true }
            if case .disconnected(other.relay.host.peerID, _) = event { break }
        }
        #expect(wasConnected)
        #expect(one.relay.gossipPeers.isEmpty)
        #expect(other.relay.state != .attached)
        await #expect(throws: RelayError.self) { try await other.relay.publish(message(1), on: Self.topic) }
        let same = dialing(address) { $0.clusterID = 1 }
        try await eventually { one.relay.state == .attached && same.relay.state == .attached }
        #expect(one.relay.gossipPeers.map(\.peer) == [same.relay.host.peerID])
        for node in [same, other, one] { await node.stop() }
    }

    @Test("A lost peer is dialed again, and missed messages are fetched from its store")
    func comesBack() async throws {
        let key = NodeKey.generate()
        var one = try listening { $0.key = key }
        let address = try await one.address()
        let two = dialing(address) { $0.catchUpTopics = [Self.contentTopic] }
        try await eventually { two.relay.state == .attached }
        #expect(two.reported.isEmpty)
        await one.stop()
        try await eventually { two.relay.state != .attached }
        let seen = two.relay.seenUntil[Self.topic]
        let missed = message(5)
        one = try listening {
            $0.key = key
            $0.listenAddresses = [address.withoutPeerID]
        }
        serveStore(on: one.relay.host, [ReceivedMessage(message: missed, pubsubTopic: Self.topic)])
        try await eventually { two.received.map(\.message) == [missed] }
        #expect(two.relay.state == .attached)
        #expect(two.reported.contains(.gap) && two.reported.contains(.recovered(1)))
        // After the store has returned all messages, `seenUntil` advances.
        try await eventually { (two.relay.seenUntil[Self.topic] ?? Timestamp(rawValue: 0)) > (seen ?? .now()) + .milliseconds(1) }
        #expect(
            try await two.relay.lookUp([missed.hash(on: Self.topic), message(6).hash(on: Self.topic)]) == [missed.hash(on: Self.topic)])
        await two.stop()
        await one.stop()
    }

    @Test("Why a peer can't be reached is logged once, and again when the reason changes")
    func unreachable() async throws {
        var one = try listening()
        let address = try await one.address()
        await one.stop()
        let log = RecordedLog()
        let two = RunningRelay(P2PRelay.Configuration(key: .generate(), peers: [address]), logger: log.logger)
        func failures() -> [String] { log.lines.filter { $0.contains("failed to connect to peer") } }
        try await eventually { failures().count == 1 }
        // Another peer has taken its address.
        one = try listening { $0.listenAddresses = [address.withoutPeerID] }
        try await eventually { failures().count == 2 }
        #expect(failures()[0] != failures()[1] && failures().allSatisfy { $0.contains(" address=\(address) ") })
        await two.stop()
        await one.stop()
    }

    /// A query that was published while the only connection was cut: nobody sends it again by gossip, so only the store has it.
    @Test func queriesPublishedInAGapOfGossipAreFetchedFromTheStore() async throws {
        let key = NodeKey.generate()
        var one = try listening { $0.key = key }
        let address = try await one.address()
        let (own, query) = (ContentTopic(TopicTag(of: "own")), ContentTopic(TopicTag(of: "query")))
        let wanted = Set([own, query].compactMap(\.tag))
        let two = dialing(address) {
            $0.catchUpTopics = [own]
            $0.wants = { wanted.contains($0) }
            // Far longer than needed on a slow machine.
            $0.lookBackWindow = .seconds(120)
        }
        try await eventually { two.relay.state == .attached }
        await one.stop()
        try await eventually { two.relay.state != .attached }
        let missed = [own, query, ContentTopic(TopicTag(of: "of another node"))].enumerated().map { number, topic in
            WakuMessage(payload: [UInt8(number), 1], contentTopic: topic, timestamp: .now())
        }
        one = try listening {
            $0.key = key
            $0.listenAddresses = [address.withoutPeerID]
        }
        serveStore(on: one.relay.host, missed.map { ReceivedMessage(message: $0, pubsubTopic: Self.topic) })
        try await eventually { Set(two.received.map(\.message)).isSuperset(of: missed[..<2]) }
        // It is queried once more, for messages that the store had not stored yet.
        try await eventually { two.relay.lockedState.withLock { $0.lookBack.next(at: .now) } == nil }
        #expect(two.received.count { $0.message == missed[1] } == 1)
        #expect(!two.received.contains { $0.message == missed[2] })
        await two.stop()
        await one.stop()
    }

    @Test("The largest message of Status' nodes is forwarded")
    func largest() async throws {
        let middle = try listening()
        let address = try await middle.address()
        let (left, right) = (dialing(address), dialing(address))
        try await eventually { middle.relay.gossipPeers.count { !$0.status.meshes.isEmpty } == 2 }
        try await eventually { left.relay.state == .attached && right.relay.state == .attached }
        var large = message(1)
        large.payload = [UInt8](repeating: 1, count: WakuMessage.maximumByteCount - 100)
        #expect(large.encoded().count <= WakuMessage.maximumByteCount)
        #expect(try await left.relay.publish(large, on: Self.topic) == .confirmed)
        try await eventually { middle.received.count == 1 && right.received.count == 1 }
        #expect(right.received[0].message == large)
        for relay in [left, right, middle] { await relay.stop() }
    }

    /// Answers queries with these messages, one per page; queries for more than `pageLimit` get a response that is too long.
    private func serveStore(on host: Host, _ kept: [ReceivedMessage], pageLimit: UInt64 = .max) {
        host.serve(WakuProtocol.store) { stream in
            var reader = MessageReader(stream, limit: 1 << 16)
            guard let bytes = try await reader.next() else { return }
            let request = try StoreRequest(parsing: Array(bytes.readableBytesView))
            guard request.pageSize ?? 0 <= pageLimit else {
                // The length prefix is enough.
                return try await stream.write(ByteBuffer(bytes: [0xFF, 0xFF, 0xFF, 0x7F]))
            }
            let matching = kept.filter { request.hashes.isEmpty || request.hashes.contains($0.hash) }
            let index = request.cursor.map { Int($0[0]) } ?? 0
            let page = matching.dropFirst(index).prefix(1)
            let response = StoreResponse(
                requestID: request.requestID, status: WakuStatus(code: 200),
                entries: page.map { .init(hash: $0.hash, message: request.includesMessages ? $0 : nil) },
                cursor: index + 1 < matching.count ? [UInt8(index + 1)] : nil)
            try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
        }
    }

    @Test("Messages missed between runs are fetched page by page at the start", arguments: [UInt64.max, 10])
    func earlierLife(pageLimit: UInt64) async throws {
        let one = try listening()
        let kept = (0..<3 as Range<UInt8>).map { ReceivedMessage(message: message($0), pubsubTopic: Self.topic) }
        serveStore(on: one.relay.host, kept, pageLimit: pageLimit)
        let two = dialing(try await one.address()) {
            $0.catchUpTopics = [Self.contentTopic]
            $0.lastSeen = [Self.topic: .now() - .seconds(100)]
        }
        try await eventually { two.received.count == 3 }
        #expect(Set(two.received) == Set(kept))
        await two.stop()
        await one.stop()
    }

    /// A store that was restarted, or has just joined, lacks what another one has.
    @Test func missedMessagesAreFetchedFromTheStoreOfEachConfiguredPeer() async throws {
        let relays = [try listening(), try listening()]
        let kept = (0..<3 as Range<UInt8>).map { ReceivedMessage(message: message($0), pubsubTopic: Self.topic) }
        serveStore(on: relays[0].relay.host, Array(kept[..<2]))
        serveStore(on: relays[1].relay.host, Array(kept[1...]))
        let two = dialing(try await relays[0].address(), try await relays[1].address()) {
            $0.catchUpTopics = [Self.contentTopic]
            $0.lastSeen = [Self.topic: .now() - .seconds(100)]
        }
        try await eventually { two.received.count == 3 }
        #expect(Set(two.received) == Set(kept))
        let recovered = two.reported.reduce(0) { sum, event in if case .recovered(let count) = event { sum + count } else { sum } }
        #expect(recovered == 3)
        for node in relays + [two] { await node.stop() }
    }

    /// Otherwise it would say that nothing was missed while the right one fails.
    @Test func theStoreOfAPeerOfAnotherShardIsNotAsked() async throws {
        let one = try listening()
        let other = try listening { $0.pubsubTopics = [PubsubTopic(rawValue: "/waku/2/rs/16/64")] }
        let asked = Mutex(0)
        let askedOther = Mutex(0)
        one.relay.host.serve(WakuProtocol.store) { _ in
            asked.withLock { $0 += 1 }
            throw ConnectionError.closedByPeer
        }
        other.relay.host.serve(WakuProtocol.store) { _ in
            askedOther.withLock { $0 += 1 }
            throw ConnectionError.closedByPeer
        }
        let two = dialing(try await one.address(), try await other.address()) { $0.catchUpTopics = [Self.contentTopic] }
        try await eventually { two.relay.state == .attached && two.relay.peers(speaking: WakuProtocol.store).count == 2 }
        try await eventually { two.relay.stores(of: [Self.topic]) == [one.relay.host.peerID] }
        #expect(two.relay.stores == [one.relay.host.peerID])
        await two.endRun()
        try await two.runAgain()
        try await eventually { asked.withLock { $0 >= 2 } }
        let kept = ReceivedMessage(message: message(7), pubsubTopic: Self.topic)
        serveStore(on: one.relay.host, [kept])
        try await eventually { two.received.contains(kept) }
        #expect(askedOther.withLock(\.self) == 0)
        for node in [two, one, other] { await node.stop() }
    }

    @Test("The stores of inbound peers are not queried")
    func inboundStore() async throws {
        let relay = try listening()
        let liar = Host(key: .generate(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        liar.serve(WakuProtocol.metadata) { stream in
            try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
        }
        serveStore(on: liar, [])
        try await liar.connect(to: try await relay.address())
        try await eventually { relay.relay.peers(speaking: WakuProtocol.store) == [liar.peerID] }
        #expect(!relay.relay.hasStore)
        await #expect(throws: RelayError.self) { try await relay.relay.lookUp([message(1).hash(on: Self.topic)]) }
        await relay.stop()
        await liar.close()
    }

    @Test("Inbound peers are not asked to publish", arguments: [WakuProtocol.lightpush, WakuProtocol.lightpushOld])
    func inboundLightpush(protocolID: String) async throws {
        let relay = try listening()
        let liar = Host(key: .generate(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        liar.serve(WakuProtocol.metadata) { stream in
            try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
        }
        let requests = Mutex(0)
        liar.serve(protocolID) { _ in requests.withLock { $0 += 1 } }
        try await liar.connect(to: try await relay.address())
        try await eventually { relay.relay.peers(speaking: protocolID) == [liar.peerID] }
        await #expect(throws: RelayError(code: .unavailable, message: "no peer is on \(Self.topic)")) {
            try await relay.relay.publish(message(1), on: Self.topic)
        }
        #expect(requests.withLock { $0 } == 0)
        await relay.stop()
        await liar.close()
    }

    @Test("A store that did not answer is not asked again while another one answers")
    func silentStore() async throws {
        let hosts = (0..<2).map { _ in Host(key: .generate(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) }
        var addresses: [Multiaddr] = []
        for host in hosts {
            addresses.append(try await host.listen(on: try Multiaddr(Self.loopback)))
            host.serve(WakuProtocol.metadata) { stream in
                try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
            }
        }
        let kept = ReceivedMessage(message: message(1), pubsubTopic: Self.topic)
        serveStore(on: hosts[0], [kept])
        let queries = Mutex(0)
        let stall = Stall()
        hosts[1].serve(WakuProtocol.store) { _ in
            queries.withLock { $0 += 1 }
            await stall.wait()
        }
        let relay = dialing(addresses[0], addresses[1])
        try await eventually { relay.relay.stores.count == 2 }
        for _ in 0..<8 {
            #expect(try await relay.relay.query(StoreQuery(hashes: [kept.hash]), within: .seconds(5)).messages == [kept])
        }
        #expect(queries.withLock { $0 } <= 1)
        stall.end()
        await relay.stop()
        for host in hosts { await host.close() }
    }

    @Test("Lightpush publishes when there are no gossip peers", arguments: [true, false])
    func lightpush(isOld: Bool) async throws {
        let host = Host(key: .generate(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let address = try await host.listen(on: try Multiaddr(Self.loopback))
        host.serve(WakuProtocol.metadata) { stream in
            try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
        }
        let pushed = Mutex<[WakuMessage]>([])
        host.serve(isOld ? WakuProtocol.lightpushOld : WakuProtocol.lightpush) { stream in
            var reader = MessageReader(stream, limit: 1 << 18)
            guard let bytes = try await reader.next().map({ Array($0.readableBytesView) }) else { return }
            if isOld {
                let request = try OldLightpushRequest(parsing: bytes)
                pushed.withLock { $0.append(request.message) }
                let response = OldLightpushResponse(requestID: request.requestID, isSuccess: true, text: "")
                try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
            } else {
                let request = try LightpushRequest(parsing: bytes)
                pushed.withLock { $0.append(request.message) }
                let response = StatusResponse(requestID: request.requestID, status: WakuStatus(code: 200), relayPeerCount: 2)
                try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
            }
        }
        let relay = dialing(address)
        try await eventually { relay.relay.host.peers.contains { $0.info != nil } }
        let message = message(9)
        let publication = try await relay.relay.publish(message, on: Self.topic)
        #expect(publication == (isOld ? .unconfirmed(canBeLookedUp: false) : .confirmed))
        #expect(pushed.withLock { $0 } == [message])
        await relay.stop()
        await host.close()
    }

    @Test("Unwanted messages are counted and forwarded, but not delivered")
    func wants() async throws {
        let wanted = TopicTag(of: "mine")
        let middle = try listening { $0.wants = { $0 == wanted } }
        let address = try await middle.address()
        let (left, right) = (dialing(address), dialing(address))
        try await eventually { middle.relay.gossipPeers.count { !$0.status.meshes.isEmpty } == 2 }
        let mine = WakuMessage(payload: [1], contentTopic: ContentTopic(wanted), timestamp: .now())
        try await left.relay.publish(message(1), on: Self.topic)
        try await left.relay.publish(mine, on: Self.topic)
        try await eventually { right.received.count == 2 && middle.received.count == 1 }
        #expect(middle.received.map(\.message) == [mine])
        #expect(middle.reported == [.foreign(1)])
        for node in [left, right, middle] { await node.stop() }
    }

    @Test("A peer that sends malformed gossip is disconnected, others are not")
    func hostile() async throws {
        let one = try listening()
        let address = try await one.address()
        let two = dialing(address)
        let host = Host(key: .generate(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        host.serve(WakuProtocol.metadata) { stream in
            try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
        }
        host.serve(WakuProtocol.relay) { stream in while try await stream.read() != nil {} }
        for bytes in [[3, 0xFF, 0xFF, 0xFF], [UInt8](repeating: 0xFF, count: 11)] as [[UInt8]] {
            try await host.connect(to: address)
            let stream = try await host.openStream(to: one.relay.host.peerID, [WakuProtocol.relay])
            try await stream.write(ByteBuffer(bytes: bytes))
            try await eventually { stream.isClosed }
            host.disconnect(one.relay.host.peerID)
            try await eventually { host.connection(to: one.relay.host.peerID) == nil }
        }
        try await eventually { two.relay.state == .attached }
        let sent = message(3)
        try await two.relay.publish(sent, on: Self.topic)
        try await eventually { one.received.map(\.message) == [sent] }
        await host.close()
        await two.stop()
        await one.stop()
    }

    /// Its connection and its subscription stay, so that nothing else tells that it sends no more.
    @Test func aPeerThatEndsItsGossipIsDialedAgain() async throws {
        let missed = ReceivedMessage(message: message(7), pubsubTopic: Self.topic)
        let host = Host(key: .generate(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        host.serve(WakuProtocol.metadata) { stream in
            try await stream.writeMessage(ByteBuffer(bytes: WakuMetadata(clusterID: 16, shards: [32]).encoded()))
        }
        host.serve(WakuProtocol.relay) { stream in while try await stream.read() != nil {} }
        serveStore(on: host, [missed])
        try await host.listen(on: Multiaddr(Self.loopback))
        let one = dialing(try #require(host.listenAddresses.first)) {
            $0.catchUpTopics = [Self.contentTopic]
            $0.gossipMuteTimeout = .milliseconds(100)
        }
        let peer = one.relay.host.peerID
        func subscribe() async throws -> PeerStream {
            try await eventually { host.connection(to: peer) != nil }
            var queue = OutboundQueue()
            _ = queue.append(.subscription(topic: Self.topic.rawValue, isOn: true))
            let frame = queue.nextFrame()
            let stream = try await host.openStream(to: peer, [WakuProtocol.relay])
            try await stream.write(ByteBuffer(bytes: frame ?? []))
            return stream
        }
        let first = try await subscribe()
        try await eventually { one.relay.state == .attached }
        first.finish()
        try await eventually { host.connection(to: peer).map { $0 !== first.connection } ?? false }
        let second = try await subscribe()
        try await eventually { one.received.contains(missed) && one.reported.contains(.gap) }
        second.finish()
        await one.stop()
        await host.close()
    }

    /// A peer that dialed this node may keep its answers back.
    @Test func aMessageForPeersThatDialedThisNodeIsUnconfirmed() async throws {
        let unreachable = try Multiaddr("/ip4/127.0.0.1/tcp/1").with(NodeKey.generate().peerID)
        let one = try listening { $0.peers = [unreachable] }
        let stranger = dialing(try await one.address())
        try await eventually { one.relay.state == .attached && stranger.relay.state == .attached }
        #expect(try await one.relay.publish(message(1), on: Self.topic) == .unconfirmed(canBeLookedUp: false))
        #expect(try await stranger.relay.publish(message(2), on: Self.topic) == .confirmed)
        try await eventually { stranger.received.count == 1 && one.received.count == 1 }
        await stranger.stop()
        await one.stop()
    }
}
