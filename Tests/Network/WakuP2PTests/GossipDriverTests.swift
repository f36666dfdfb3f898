import Core
import TestSupport
import GossipSub
import LibP2P
import NIOCore
import Synchronization
import Testing
import Waku

@testable import WakuP2P

@Suite("Gossip driver")
struct GossipDriverTests {
    /// Represents a connection by its identity.
    private final class Life {}

    private static let topic = PubsubTopic.statusDefault
    private let peer = NodeKey.generate().peerID
    private let first = Life()
    private let second = Life()

    private func router(
        window: Duration = .seconds(60), chosen: Set<PeerID>? = nil, clock: @escaping @Sendable () -> Moment = Moment.now,
        charge: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> GossipDriver {
        GossipDriver(
            configuration: GossipConfiguration(), topics: [Self.topic], chosen: chosen,
            validator: MessageValidator(window: window, wants: nil),
            seed: 1, charge: charge, clock: clock)
    }

    private final class SetClock: Sendable {
        let instant = Mutex(Instant.zero)
        var now: Moment { Moment(instant: instant.withLock { $0 }, wallClock: .now()) }
    }

    /// A received frame with these items, without its length.
    private func frame(_ items: [Outgoing]) throws -> ByteBuffer {
        var queue = OutboundQueue()
        for item in items { _ = queue.append(item) }
        var framing = FrameSplitter(limit: GossipRPC.maximumByteCount)
        while let bytes = queue.nextFrame() { framing.append(bytes) }
        let frame = try framing.next()
        return ByteBuffer(bytes: try #require(frame))
    }

    private var hello: [Outgoing] { [.subscription(topic: Self.topic.rawValue, isOn: true)] }

    @Test("A new connection replaces the old one, whose end is noticed later")
    func replacedConnection() throws {
        let router = router()
        _ = router.connected(peer, over: ObjectIdentifier(first), version: .v11, isOutbound: false, isCurrent: { true })
        _ = router.received([try frame(hello)], from: peer)
        _ = router.connected(peer, over: ObjectIdentifier(second), version: .v11, isOutbound: false, isCurrent: { true })
        _ = router.received([try frame(hello)], from: peer)
        router.disconnected(peer, current: ObjectIdentifier(second))
        #expect(router.statuses.map(\.status.topics) == [[Self.topic.rawValue]])
        #expect(router.nextFrame(to: peer, over: ObjectIdentifier(first)) == nil)
        #expect(router.nextFrame(to: peer, over: ObjectIdentifier(second)) != nil)
        router.disconnected(peer, current: nil)
        #expect(router.statuses.isEmpty)
        #expect(router.nextFrame(to: peer, over: ObjectIdentifier(second)) == nil)
    }

    @Test("Peers whose disconnection was not reported are disconnected later")
    func missedDisconnections() {
        let router = router()
        let gone = NodeKey.generate().peerID
        _ = router.connected(peer, over: ObjectIdentifier(first), version: .v11, isOutbound: false, isCurrent: { true })
        _ = router.connected(gone, over: ObjectIdentifier(second), version: .v11, isOutbound: false, isCurrent: { true })
        router.disconnectOthers { $0 == peer ? ObjectIdentifier(first) : nil }
        #expect(router.statuses.map(\.peer) == [peer])
    }

    @Test("A connection that was replaced before its gossip started is ignored")
    func lateConnection() throws {
        let router = router()
        _ = router.connected(peer, over: ObjectIdentifier(second), version: .v11, isOutbound: false, isCurrent: { true })
        #expect(!router.connected(peer, over: ObjectIdentifier(first), version: .v11, isOutbound: true, isCurrent: { false }).isCurrent)
        _ = router.received([try frame(hello)], from: peer)
        #expect(router.statuses.map(\.status.topics) == [[Self.topic.rawValue]])
        #expect(router.nextFrame(to: peer, over: ObjectIdentifier(first)) == nil)
        #expect(router.nextFrame(to: peer, over: ObjectIdentifier(second)) != nil)
    }

    @Test("Two streams of one connection are one peer with one set of subscriptions")
    func twoStreams() {
        let router = router()
        _ = router.connected(peer, over: ObjectIdentifier(first), version: .v11, isOutbound: false, isCurrent: { true })
        _ = router.connected(peer, over: ObjectIdentifier(first), version: .v12, isOutbound: false, isCurrent: { true })
        #expect(router.statuses.count == 1)
        #expect(router.nextFrame(to: peer, over: ObjectIdentifier(first)) != nil)
        #expect(router.nextFrame(to: peer, over: ObjectIdentifier(first)) == nil)
    }

    @Test("Valid messages are delivered, untimely ones not forwarded, invalid ones lower the score")
    func validation() throws {
        let router = router()
        let other = NodeKey.generate().peerID
        for number in [peer, other] {
            _ = router.connected(number, over: ObjectIdentifier(first), version: .v11, isOutbound: false, isCurrent: { true })
            _ = router.received([try frame(hello)], from: number)
        }
        _ = router.heartbeat()
        while router.nextFrame(to: other, over: ObjectIdentifier(first)) != nil {}
        func message(_ time: Timestamp) -> WakuMessage {
            WakuMessage(payload: [1], contentTopic: ContentTopic(rawValue: "/c"), timestamp: time)
        }
        func send(_ data: [UInt8]) throws -> GossipDriver.Outcome {
            let outcome = router.received([try frame([.message(GossipMessage(topic: Self.topic.rawValue, data: data))])], from: peer)
            _ = router.forward(outcome.held)
            return outcome
        }
        let old = message(.now() - .seconds(100))
        #expect(try send(old.encoded()).messages == [ReceivedMessage(message: old, pubsubTopic: Self.topic)])
        #expect(router.nextFrame(to: other, over: ObjectIdentifier(first)) == nil)
        let new = message(.now())
        #expect(try send(new.encoded()).messages.count == 1)
        #expect(router.nextFrame(to: other, over: ObjectIdentifier(first)) != nil)
        // A payload alone has no topic; 0xFF is not a protobuf.
        for data in [[0x0A, 1, 1], [0xFF]] as [[UInt8]] { #expect(try send(data).messages.isEmpty) }
        #expect(router.counters.rejected == 2 && router.counters.ignored == 1 && router.counters.accepted == 1)
        var left: [PeerID] = []
        for number in 0..<20 as Range<UInt8> { left += try send([0xFF, number]).peersToLeave }
        #expect(left == [peer])
    }

    /// A driver with these peers in its mesh, and their queues empty.
    private func router(of peers: [PeerID]) throws -> GossipDriver {
        let router = router()
        for peer in peers {
            _ = router.connected(peer, over: ObjectIdentifier(first), version: .v11, isOutbound: false, isCurrent: { true })
            _ = router.received([try frame(hello)], from: peer)
        }
        _ = router.heartbeat()
        for peer in peers { while router.nextFrame(to: peer, over: ObjectIdentifier(first)) != nil {} }
        return router
    }

    @Test("Peers that send a message before it is forwarded are not sent a copy")
    func copies() throws {
        let (second, third) = (NodeKey.generate().peerID, NodeKey.generate().peerID)
        let router = try router(of: [peer, second, third])
        let message = WakuMessage(payload: [1], contentTopic: ContentTopic(rawValue: "/c"), timestamp: .now())
        let frame = try frame([.message(GossipMessage(topic: Self.topic.rawValue, data: message.encoded()))])
        let outcome = router.received([frame], from: peer)
        #expect(outcome.messages.map(\.message) == [message])
        let copy = router.received([frame], from: second)
        #expect(copy.messages.isEmpty && copy.held.isEmpty)
        #expect(router.nextFrame(to: third, over: ObjectIdentifier(first)) == nil)
        _ = router.forward(outcome.held)
        #expect(router.nextFrame(to: third, over: ObjectIdentifier(first)) != nil)
        #expect(router.nextFrame(to: second, over: ObjectIdentifier(first)) == nil)
        #expect(router.counters.forwarded == 1 && router.counters.accepted == 1)
    }

    @Test("Messages beyond the limit of held bytes are forwarded at once")
    func heldBytes() throws {
        let router = try router(of: [peer, NodeKey.generate().peerID])
        var number: UInt8 = 0
        func send() throws -> [GossipDriver.Held] {
            number += 1
            let message = WakuMessage(
                payload: [UInt8](repeating: number, count: 140_000), contentTopic: ContentTopic(rawValue: "/c"), timestamp: .now())
            return router.received([try frame([.message(GossipMessage(topic: Self.topic.rawValue, data: message.encoded()))])], from: peer)
                .held
        }
        let count = GossipDriver.heldByteLimit / 141_000
        for round in 0..<2 {
            var held: [GossipDriver.Held] = []
            for _ in 0..<count { held += try send() }
            #expect(held.count == count)
            #expect(router.counters.accepted == round * (count + 1))
            #expect(try send().isEmpty)
            #expect(router.counters.accepted == round * (count + 1) + 1)
            _ = router.forward(held)
            #expect(router.counters.accepted == (round + 1) * (count + 1))
        }
    }

    /// Taking a lock that is already held would block the validator forever.
    @Test("Messages are validated without holding the driver's lock")
    func validationOutsideOfTheLock() throws {
        let used = Mutex<GossipDriver?>(nil)
        let asked = Mutex(0)
        let validator = MessageValidator(window: .seconds(60)) { _ in
            asked.withLock { $0 += used.withLock { $0?.counters.received ?? 0 } }
            return true
        }
        let router = GossipDriver(configuration: GossipConfiguration(), topics: [Self.topic], validator: validator, seed: 1)
        used.withLock { $0 = router }
        _ = router.connected(peer, over: ObjectIdentifier(first), version: .v11, isOutbound: false, isCurrent: { true })
        let message = WakuMessage(payload: [1], contentTopic: ContentTopic(rawValue: "/waku/1/0x01020304/rfc26"), timestamp: .now())
        let frame = try frame(hello + [.message(GossipMessage(topic: Self.topic.rawValue, data: message.encoded()))])
        let outcome = router.received([frame], from: peer)
        #expect(outcome.messages.map(\.message) == [message])
        #expect(asked.withLock { $0 } == 1)
        _ = router.forward(outcome.held)
        #expect(router.counters.accepted == 1)
        used.withLock { $0 = nil }
    }

    @Test("A peer that reads nothing is stalled; one that reads occasionally is not")
    func peersThatReadNothing() throws {
        let clock = SetClock()
        let router = router { clock.now }
        let life = ObjectIdentifier(first)
        _ = router.connected(peer, over: life, version: .v11, isOutbound: false, isCurrent: { true })
        while router.nextFrame(to: peer, over: life) != nil {}
        // No frame is waiting.
        clock.instant.withLock { $0 += GossipDriver.stallTimeout }
        #expect(router.stalledPeers == [])
        // Four frames are waiting, and one is taken just in time, then another.
        _ = router.received([try frame(hello)], from: peer)
        for _ in 0..<4 {
            let message = WakuMessage(
                payload: [UInt8](repeating: 1, count: 60_000), contentTopic: ContentTopic(rawValue: "/c"), timestamp: .now())
            _ = router.publish(message.encoded(), on: Self.topic)
        }
        for _ in 0..<2 {
            clock.instant.withLock { $0 += GossipDriver.stallTimeout - .seconds(1) }
            #expect(router.stalledPeers == [])
            #expect(router.nextFrame(to: peer, over: life) != nil)
        }
        clock.instant.withLock { $0 += GossipDriver.stallTimeout }
        #expect(router.stalledPeers == [peer])
        while router.nextFrame(to: peer, over: life) != nil {}
        #expect(router.stalledPeers == [])
    }

    @Test("Frames of unknown peers are ignored; malformed frames disconnect a peer")
    func strangers() throws {
        let router = router()
        #expect(router.received([try frame(hello)], from: peer).messages.isEmpty)
        #expect(router.statuses.isEmpty)
        _ = router.connected(peer, over: ObjectIdentifier(first), version: .v11, isOutbound: false, isCurrent: { true })
        #expect(router.received([ByteBuffer(bytes: [0xFF, 0xFF])], from: peer).peersToLeave == [peer])
    }

    /// Peers of the mesh have messages waiting, and two others requested the same ones.
    @Test("What waits for several peers counts once, and not while it is cached; peers outside of the mesh lose it first")
    func memory() throws {
        let charged = Mutex(0)
        let clock = SetClock()
        let router = router(clock: { clock.now }, charge: { change in charged.withLock { $0 += change } })
        let life = ObjectIdentifier(first)
        let peers = (0..<12).map { _ in NodeKey.generate().peerID }
        for peer in peers {
            _ = router.connected(peer, over: life, version: .v11, isOutbound: false, isCurrent: { true })
            _ = router.received([try frame(hello)], from: peer)
        }
        _ = router.heartbeat()
        func queue(_ peer: PeerID) -> Int {
            let queues = router.free(0, keeping: 0)
            return queues[peer] ?? 0
        }
        for peer in peers { while router.nextFrame(to: peer, over: life) != nil {} }
        #expect(charged.withLock(\.self) == 0)
        let members = router.statuses.filter { !$0.status.meshes.isEmpty }.map(\.peer)
        let others = peers.filter { !members.contains($0) }
        #expect(members.count >= 4 && others.count >= 4)
        // Each message is queued for all of the mesh but its sender; two peers outside of it request them.
        var ids: [MessageID] = []
        for number in 0..<4 as Range<UInt8> {
            let message = WakuMessage(
                payload: [UInt8](repeating: number, count: 100_000), contentTopic: ContentTopic(rawValue: "/c"), timestamp: .now())
            let gossip = GossipMessage(topic: Self.topic.rawValue, data: message.encoded())
            ids.append(gossip.id)
            let outcome = router.received([try frame([.message(gossip)])], from: members[0])
            _ = router.forward(outcome.held)
        }
        _ = router.received([try frame([.iwant(ids)])], from: others[0])
        _ = router.received([try frame([.iwant(Array(ids.prefix(2)))])], from: others[1])
        #expect(queue(others[0]) > 400_000 && queue(others[1]) > 200_000 && members.dropFirst().allSatisfy { queue($0) > 400_000 })
        // The cache has the messages.
        #expect(charged.withLock(\.self) < 20_000)
        for _ in 0..<7 { _ = router.heartbeat() }
        let held = charged.withLock(\.self)
        #expect((400_000..<450_000).contains(held))
        // An own message is kept.
        let own = WakuMessage(payload: [UInt8](repeating: 9, count: 20_000), contentTopic: ContentTopic(rawValue: "/c"), timestamp: .now())
        _ = router.publish(own.encoded(), on: Self.topic)
        // Nothing is gained, as they wait for the mesh, too; it keeps them.
        _ = router.free(100_000, keeping: 10_000_000)
        #expect(queue(others[0]) < 50_000 && queue(others[0]) > 20_000 && queue(others[1]) < 50_000)
        #expect(members.dropFirst().allSatisfy { queue($0) > 400_000 })
        // A member that reads has nothing to lose.
        let reader = members[1]
        while router.nextFrame(to: reader, over: life) != nil {}
        _ = router.free(400_000, keeping: 0)
        #expect(members.allSatisfy { queue($0) < 50_000 } && charged.withLock(\.self) < 50_000)
        #expect(members.dropFirst(2).allSatisfy { queue($0) > 20_000 })
        for peer in peers { router.disconnected(peer, current: nil) }
        for _ in 0..<7 { _ = router.heartbeat() }
        #expect(charged.withLock(\.self) == 0)
    }

    @Test("Of the peers outside of the mesh, those with less waiting keep it")
    func longestQueueFirst() throws {
        let charged = Mutex(0)
        let router = router(charge: { change in charged.withLock { $0 += change } })
        let life = ObjectIdentifier(first)
        let peers = (0..<3).map { _ in NodeKey.generate().peerID }
        // Without subscriptions, they are in no mesh.
        for peer in peers { _ = router.connected(peer, over: life, version: .v11, isOutbound: false, isCurrent: { true }) }
        var ids: [MessageID] = []
        for number in 0..<6 as Range<UInt8> {
            let message = WakuMessage(
                payload: [UInt8](repeating: number, count: 50_000), contentTopic: ContentTopic(rawValue: "/c"), timestamp: .now())
            let gossip = GossipMessage(topic: Self.topic.rawValue, data: message.encoded())
            ids.append(gossip.id)
            _ = router.forward(router.received([try frame([.message(gossip)])], from: peers[0]).held)
        }
        _ = router.received([try frame([.iwant(Array(ids.prefix(2)))])], from: peers[1])
        _ = router.received([try frame([.iwant(Array(ids.suffix(4)))])], from: peers[2])
        for _ in 0..<7 { _ = router.heartbeat() }
        let before = router.free(0, keeping: 0)
        #expect(before[peers[1]] ?? 0 > 100_000 && before[peers[2]] ?? 0 > 200_000)
        let after = router.free(100_000, keeping: 0)
        #expect(after[peers[1]] ?? 0 > 100_000 && after[peers[2]] ?? 0 < 10_000)
        #expect((100_000..<110_000).contains(charged.withLock(\.self)))
    }

    /// A peer that subscribed, in the mesh.
    private func join(_ router: GossipDriver, _ peer: PeerID, over life: Life, isOutbound: Bool) throws {
        _ = router.connected(peer, over: ObjectIdentifier(life), version: .v11, isOutbound: isOutbound, isCurrent: { true })
        _ = router.received([try frame(hello)], from: peer)
        _ = router.heartbeat()
    }

    @Test func peersThatDialedThisNodeDoNotCoverATopic() throws {
        let (stranger, listed) = (NodeKey.generate().peerID, NodeKey.generate().peerID)
        let router = router(chosen: [peer])
        try join(router, stranger, over: Life(), isOutbound: false)
        #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: false)])
        // This one is configured, so it does not matter which side dialed.
        try join(router, peer, over: first, isOutbound: false)
        #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: true)] && router.chosenPeers == [peer])
        router.disconnected(peer, current: nil)
        #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: false)])
        let other = NodeKey.generate().peerID
        try join(router, other, over: Life(), isOutbound: true)
        #expect(router.takeReceptions()[0].isCovered && router.chosenPeers == [other])
        router.disconnected(other, current: nil)
        try join(router, listed, over: Life(), isOutbound: false)
        #expect(!router.takeReceptions()[0].isCovered)
        router.choose([peer, listed])
        #expect(router.takeReceptions()[0].isCovered)
    }

    /// A peer whose mesh is full takes messages, and announces others.
    @Test func aPeerThatPrunesThisNodeIsEnoughToAttachButDoesNotCoverATopic() throws {
        let router = router()
        try join(router, peer, over: first, isOutbound: true)
        _ = router.received([try frame([.prune(topic: Self.topic.rawValue, backoff: .seconds(60))])], from: peer)
        _ = router.heartbeat()
        #expect(router.statuses.map(\.status.meshes) == [[]])
        #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: false)])
        _ = router.received([try frame([.subscription(topic: Self.topic.rawValue, isOn: false)])], from: peer)
        #expect(router.takeReceptions() == [.init(hasPeers: false, isCovered: false)])
    }

    @Test func aPeerWhoseAnnouncementsAreIgnoredIsNotEnoughToAttach() throws {
        // Scores decay with time.
        let clock = SetClock()
        let router = router { clock.now }
        try join(router, peer, over: first, isOutbound: true)
        // The first invalid message lowers the score to -100, the second one to -400.
        for (number, isEnough) in [(1, true), (2, false)] as [(UInt8, Bool)] {
            let invalid = GossipMessage(topic: Self.topic.rawValue, data: [0xFF, number])
            _ = router.received([try frame([.message(invalid)])], from: peer)
            _ = router.heartbeat()
            #expect(router.takeReceptions() == [.init(hasPeers: isEnough, isCovered: false)])
        }
    }

    @Test func meshesKeepPlacesForChosenPeersThatDialedThisNode() throws {
        let listed = NodeKey.generate().peerID
        let router = router(chosen: [peer])
        func isInMesh(_ peer: PeerID) -> Bool { router.statuses.contains { $0.peer == peer && !$0.status.meshes.isEmpty } }
        // Enough for a mesh.
        for _ in 0..<6 { try join(router, NodeKey.generate().peerID, over: Life(), isOutbound: false) }
        try join(router, listed, over: second, isOutbound: false)
        #expect(!isInMesh(listed))
        try join(router, peer, over: first, isOutbound: false)
        #expect(isInMesh(peer) && !isInMesh(listed))
        router.choose([peer, listed])
        _ = router.heartbeat()
        #expect(isInMesh(listed) && router.statuses.allSatisfy { !$0.isOutbound })
    }

    @Test func peersThatRelayNoneOfTheTopicsDoNotCount() throws {
        let other = NodeKey.generate().peerID
        let router = router(chosen: [])
        for (each, life) in [(peer, first), (other, second)] {
            router.connected(each, over: ObjectIdentifier(life), version: .v11, isOutbound: each == peer, isCurrent: { true })
            _ = router.received([try frame([.subscription(topic: "/waku/2/rs/16/1", isOn: true)])], from: each)
        }
        #expect(router.statuses.count == 2 && router.relayingPeers.isEmpty && router.chosenPeers.isEmpty)
        for each in [peer, other] { _ = router.received([try frame(hello)], from: each) }
        #expect(router.relayingPeers == [peer, other] && router.chosenPeers == [peer])
        _ = router.received([try frame([.subscription(topic: Self.topic.rawValue, isOn: false)])], from: peer)
        #expect(router.relayingPeers == [other] && router.chosenPeers.isEmpty)
    }

    @Test func allPeersOfANodeThatOnlyPublishesCount() {
        let router = GossipDriver(
            configuration: GossipConfiguration(), topics: [], validator: MessageValidator(window: .seconds(60), wants: nil), seed: 1)
        router.connected(peer, over: ObjectIdentifier(first), version: .v11, isOutbound: true, isCurrent: { true })
        #expect(router.relayingPeers == [peer] && router.chosenPeers == [peer])
    }

    @Test func withoutChosenPeersAllCoverATopic() throws {
        let router = router()
        try join(router, peer, over: first, isOutbound: false)
        #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: true)])
        // None has a place before others.
        #expect(router.statuses.map(\.status.isOutbound) == [false])
    }

    @Test(arguments: [true, false]) func aLostPeerIsReportedWithWhenItWasLastHeard(isReplacedFirst: Bool) throws {
        let clock = SetClock()
        let router = router(chosen: [peer]) { clock.now }
        try join(router, NodeKey.generate().peerID, over: Life(), isOutbound: false)
        clock.instant.withLock { $0 = .seconds(5) }
        try join(router, peer, over: first, isOutbound: true)
        clock.instant.withLock { $0 = .seconds(90) }
        if !isReplacedFirst { router.disconnected(peer, current: nil) }
        // All before a heartbeat of the relay.
        try join(router, peer, over: second, isOutbound: true)
        router.disconnected(peer, current: ObjectIdentifier(second))
        #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: true, lostFrom: .seconds(5))])
        #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: true)])
    }

    /// All three fail at second 100. Messages published from then until the first is back are sent by none of them.
    @Test(arguments: [false, true]) func aLostPeerBesideOthersIsALossUnlessOneOfThemIsHeardLater(isLaterHeard: Bool) throws {
        let clock = SetClock()
        let others = [NodeKey.generate().peerID, NodeKey.generate().peerID]
        let router = router(chosen: []) { clock.now }
        func set(_ second: Int) { clock.instant.withLock { $0 = .seconds(second) } }
        for each in [peer] + others { try join(router, each, over: first, isOutbound: true) }
        set(100)
        for each in others + [peer] { _ = router.received([try frame(hello)], from: each) }
        set(121)
        router.disconnected(peer, current: nil)
        try join(router, peer, over: second, isOutbound: true)
        set(130)
        _ = router.received([try frame(hello)], from: peer)
        if isLaterHeard { _ = router.received([try frame(hello)], from: others[1]) }
        for (index, other) in others.enumerated() {
            #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: true)])
            set(140 + 20 * index)
            router.disconnected(other, current: nil)
        }
        #expect(router.takeReceptions() == [.init(hasPeers: true, isCovered: true, lostFrom: isLaterHeard ? nil : .seconds(100))])
    }

    @Test func aPeerThatEndsItsStreamIsDisconnectedUnlessItOpensAnother() throws {
        let clock = SetClock()
        let router = router { clock.now }
        let life = ObjectIdentifier(first)
        func later() -> [PeerID] {
            clock.instant.withLock { $0 += .seconds(9) }
            return router.heartbeat().peersToLeave
        }
        try join(router, peer, over: first, isOutbound: true)
        #expect(later() + later() == [])
        router.streamBegan(of: peer, over: life)
        router.streamBegan(of: peer, over: life)
        router.streamEnded(of: peer, over: life)
        #expect(later() + later() == [])
        router.streamEnded(of: peer, over: life)
        #expect(later() == [])
        router.streamBegan(of: peer, over: life)
        #expect(later() + later() == [])
        router.streamEnded(of: peer, over: life)
        #expect(later() == [])
        #expect(later() == [peer])
        // The end of a stream over an earlier connection says nothing.
        try join(router, peer, over: second, isOutbound: true)
        router.streamEnded(of: peer, over: life)
        #expect(later() + later() == [])
    }

    @Test func ownMessagesCountForChosenPeersThatTheyAreQueuedFor() throws {
        let router = router(chosen: [peer])
        func publish(_ number: UInt8) -> Int {
            let message = WakuMessage(
                payload: [UInt8](repeating: number, count: 140_000), contentTopic: ContentTopic(rawValue: "/c"), timestamp: .now())
            let (publication, outcome) = router.publish(message.encoded(), on: Self.topic)
            #expect(publication == .sent(peerCount: router.statuses.count))
            return outcome.chosenRecipientCount
        }
        try join(router, NodeKey.generate().peerID, over: second, isOutbound: false)
        #expect(publish(0) == 0)
        try join(router, peer, over: first, isOutbound: true)
        #expect(publish(1) == 1)
        // Until its queue is full.
        #expect((2..<40).map { publish($0) }.last == 0)
        while router.nextFrame(to: peer, over: ObjectIdentifier(first)) != nil {}
        #expect(publish(40) == 1)
    }
}
