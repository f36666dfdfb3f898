import Core
import TestSupport
import Testing

@testable import GossipSub

@Suite("Message propagation")
struct GossipMessagesTests {
    private let topic = Router.topic

    @Test("A promise is broken from the time at which it is due")
    func duePromises() {
        var promises = GossipPromises()
        let (id, peer) = (message(1).id, PeerNumber(rawValue: 1))
        promises.add(id, by: peer, due: .seconds(3))
        let early = promises.broken(at: .milliseconds(2999))
        let due = promises.broken(at: .seconds(3))
        #expect(early.isEmpty && due == [peer])
    }

    private func message(_ number: UInt8, byteCount: Int = 10) -> GossipMessage {
        GossipMessage(topic: topic, data: [UInt8](repeating: number, count: byteCount))
    }

    @Test("An accepted message is forwarded once to the mesh, not to its senders")
    func forwards() throws {
        var router = try Router.subscribed(peerCount: 4)
        let message = message(1)
        try router.send([.message(message)], from: peer(0))
        try router.send([.message(message)], from: peer(1))
        let validated = router.gossip.takeActions()
        #expect(validated.count == 1)
        router.gossip.judged(message.id, as: .accept, at: router.now)
        guard case .forward(let forwarded, let peers)? = router.gossip.takeActions().first else {
            Issue.record("nothing is forwarded")
            return
        }
        #expect(forwarded.id == message.id)
        #expect(peers.sorted() == [peer(2), peer(3)])
        try router.send([.message(message)], from: peer(2))
        router.gossip.judged(message.id, as: .accept, at: router.now)
        #expect(router.gossip.takeActions().isEmpty)
        #expect(router.gossip.counters.duplicates == 2)
    }

    @Test("A message from all peers of the mesh is forwarded to nobody")
    func knownToAll() throws {
        var router = try Router.subscribed(peerCount: 2)
        for number in UInt32(0)..<2 { try router.send([.message(message(1))], from: peer(number)) }
        _ = router.gossip.takeActions()
        router.gossip.judged(message(1).id, as: .accept, at: router.now)
        #expect(router.gossip.counters.accepted == 1 && router.gossip.counters.forwarded == 0)
        #expect(router.gossip.takeActions().isEmpty)
    }

    @Test("Ignored messages are not forwarded; rejected ones lower the score of all senders")
    func verdicts() throws {
        var router = try Router.subscribed(peerCount: 3)
        let (ignored, rejected) = (message(1), message(2))
        try router.send([.message(ignored), .message(rejected)], from: peer(0))
        try router.send([.message(rejected)], from: peer(1))
        _ = router.gossip.takeActions()
        router.gossip.judged(ignored.id, as: .ignore, at: router.now)
        #expect(router.gossip.score(peer(0)) == 0)
        router.gossip.judged(rejected.id, as: .reject, at: router.now)
        #expect(router.gossip.score(peer(0)) == -100)
        #expect(router.gossip.score(peer(1)) == -100)
        #expect(router.gossip.takeActions().isEmpty)
        #expect(router.gossip.pending.isEmpty && router.gossip.pendingByteCount == 0)
    }

    @Test("Messages with an author or without data are rejected, oversized ones ignored")
    func refusals() throws {
        var router = try Router.subscribed(peerCount: 1)
        let name = field(0x22, Array(topic.utf8))
        for content in [field(0x12, [1]) + field(0x0A, [1]) + name, name] {
            router.gossip.received(try GossipRPC(parsing: field(0x12, content)), from: peer(0), at: router.now)
        }
        let score = router.gossip.score(peer(0))
        #expect(score == -400)
        try router.send([.message(message(1, byteCount: 1 << 20 + 1))], from: peer(0))
        #expect(router.gossip.counters.rejected == 2 && router.gossip.counters.ignored == 1)
        #expect(router.gossip.score(peer(0)) == score)
        #expect(router.gossip.takeActions().isEmpty)
        try router.send([.message(message(1, byteCount: 1 << 20))], from: peer(0))
        #expect(router.words(to: peer(0)) == ["validate"])
    }

    @Test("Without StrictNoSign, author and signature are removed")
    func authors() throws {
        var configuration = GossipConfiguration()
        configuration.refusesAuthors = false
        var router = try Router.subscribed(peerCount: 2, configuration)
        let content = field(0x12, [1, 2]) + field(0x0A, [1]) + field(0x22, Array(topic.utf8))
        router.gossip.received(try GossipRPC(parsing: field(0x12, content)), from: peer(0), at: router.now)
        guard case .validate(let message, _)? = router.gossip.takeActions().first else {
            Issue.record("nothing is validated")
            return
        }
        #expect(message.field == GossipMessage(topic: topic, data: [1, 2]).field)
    }

    @Test("A peer is disconnected after ten invalid messages, and again when it reconnects")
    func graylisting() throws {
        var router = try Router.subscribed(peerCount: 2)
        for number in 0..<20 as Range<UInt8> {
            let message = message(number)
            try router.send([.message(message)], from: peer(0))
            router.gossip.judged(message.id, as: .reject, at: router.now)
        }
        let words = router.words(to: peer(0))
        #expect(words.count { $0 == "validate" } == 11)
        #expect(words.last == "disconnect")
        router.gossip.disconnected(peer(0), at: router.now)
        #expect(router.gossip.remembers(peer(0)))
        router.gossip.connected(peer(0), version: .v11, isOutbound: false)
        #expect(router.words(to: peer(0)) == ["disconnect"])
        router.gossip.disconnected(peer(0), at: router.now)
        // After the retention time everything is forgotten.
        router.heartbeat(700)
        #expect(!router.gossip.remembers(peer(0)))
        router.gossip.connected(peer(0), version: .v11, isOutbound: false)
        #expect(router.words(to: peer(0)) == ["subscribe"])
    }

    @Test("A malformed frame disconnects the peer")
    func malformed() throws {
        var router = try Router.subscribed(peerCount: 1)
        router.gossip.receivedMalformed(from: peer(0))
        #expect(router.words(to: peer(0)) == ["disconnect"])
        try router.send([.message(message(1))], from: peer(0))
        #expect(router.gossip.takeActions().isEmpty)
    }

    @Test func thousandsOfEmptyFramesDisconnectThePeer() throws {
        var router = try Router.subscribed(peerCount: 1)
        let empty = try GossipRPC(parsing: [])
        for _ in 0..<3 {
            for _ in 0..<GossipPeer.emptyFrameLimit { router.gossip.received(empty, from: peer(0), at: router.now) }
            #expect(!router.words(to: peer(0)).contains("disconnect"))
            router.heartbeat()
        }
        for _ in 0...GossipPeer.emptyFrameLimit { router.gossip.received(empty, from: peer(0), at: router.now) }
        #expect(router.words(to: peer(0)).contains("disconnect"))
    }

    @Test("Own messages are flooded to all peers above the publish threshold")
    func floodPublishing() throws {
        var router = try Router.subscribed(peerCount: 20)
        for number in 0..<4 as Range<UInt8> {
            let message = message(100 + number)
            try router.send([.message(message)], from: peer(0))
            router.gossip.judged(message.id, as: .reject, at: router.now)
        }
        _ = router.gossip.takeActions()
        #expect(router.gossip.publish([1], on: topic, at: router.now) == .sent(peerCount: 19))
        #expect(router.gossip.publish([1], on: topic, at: router.now) == .duplicate)
        #expect(router.gossip.publish([UInt8](repeating: 0, count: 1 << 20 + 1), on: topic, at: router.now) == .tooLarge)
        #expect(router.gossip.publish([2], on: "/nobody", at: router.now) == .noPeers)
        // A large one leaves for the mesh only.
        let large = [UInt8](repeating: 0, count: GossipSubRouter.floodByteLimit)
        #expect(router.gossip.publish(large, on: topic, at: router.now) == .sent(peerCount: 19))
        let meshCount = router.gossip.mesh(of: topic).count
        #expect((4...8).contains(meshCount) && router.gossip.publish(large + [1], on: topic, at: router.now) == .sent(peerCount: meshCount))
        // The message returns as a duplicate.
        _ = router.gossip.takeActions()
        try router.send([.message(GossipMessage(topic: topic, data: [1]))], from: peer(3))
        #expect(router.gossip.takeActions().isEmpty)
    }

    @Test("The fanout is kept for a minute and refilled when peers leave")
    func fanout() throws {
        var configuration = GossipConfiguration()
        configuration.floodsOwn = false
        var router = Router(configuration)
        for number in 0..<20 as Range<UInt32> {
            router.gossip.connected(peer(number), version: .v11, isOutbound: false)
            try router.send([.subscription(topic: topic, isOn: true)], from: peer(number))
        }
        #expect(router.gossip.publish([1], on: topic, at: router.now) == .sent(peerCount: 6))
        let chosen = try #require(router.gossip.topics[topic]?.fanout)
        router.heartbeat()
        #expect(router.gossip.topics[topic]?.fanout == chosen)
        router.gossip.disconnected(chosen[0], at: router.now)
        router.heartbeat()
        let refilled = try #require(router.gossip.topics[topic]?.fanout)
        #expect(refilled.count == 6 && refilled.starts(with: chosen.dropFirst()))
        router.heartbeat(60)
        #expect(router.gossip.topics[topic]?.fanout == [])
        #expect(router.gossip.ownTopics.isEmpty)
        // Without flood a subscriber publishes to its mesh.
        router.gossip.subscribe(to: topic, at: router.now)
        router.heartbeat()
        #expect(router.gossip.publish([2], on: topic, at: router.now) == .sent(peerCount: 6))
    }

    @Test("Messages pending validation are bounded in bytes; dropped ones are accepted later")
    func pendingBound() throws {
        var configuration = GossipConfiguration()
        configuration.pendingByteCount = 20
        var router = try Router.subscribed(peerCount: 2, configuration)
        for number in 1...3 as ClosedRange<UInt8> { try router.send([.message(message(number))], from: peer(0)) }
        #expect(router.words(to: peer(0)) == ["validate", "validate"])
        #expect(router.gossip.counters.overloaded == 1)
        router.gossip.judged(message(1).id, as: .accept, at: router.now)
        try router.send([.message(message(3))], from: peer(1))
        #expect(router.words(to: peer(1)) == ["forward", "validate"])
    }

    @Test("IDONTWANT is sent for large messages, and honored")
    func idontwant() throws {
        var router = try Router.subscribed(peerCount: 3, version: .v12)
        let (large, small) = (message(1, byteCount: 2000), message(2))
        try router.send([.message(large), .message(small)], from: peer(0))
        #expect(router.gossip.actions.compactMap { $0.word(to: peer(1)) } == ["idontwant 1"])
        #expect(router.words(to: peer(0)) == ["validate", "validate"])
        try router.send([.idontwant([large.id])], from: peer(1))
        router.gossip.judged(large.id, as: .accept, at: router.now)
        #expect(router.gossip.actions.compactMap { $0.word(to: peer(1)) } == [])
        #expect(router.words(to: peer(2)) == ["forward"])
        // IDONTWANT is valid for some heartbeats.
        router.heartbeat(3)
        #expect(router.gossip.peers[peer(1)]?.unwanted.isEmpty == true)
        // On Waku's own protocol it is not sent.
        var old = try Router.subscribed(peerCount: 2)
        try old.send([.message(large)], from: peer(0))
        #expect(old.words(to: peer(1)).isEmpty)
    }
}

@Suite("Gossip: IHAVE and IWANT")
struct LazyGossipTests {
    private let topic = Router.topic

    private func ids(_ range: Range<Int>) -> [MessageID] {
        range.map { MessageID(of: [UInt8($0 & 255), UInt8($0 >> 8)][...]) }
    }

    @Test("Messages are announced outside of the mesh for three heartbeats and served for six")
    func announcing() throws {
        var router = try Router.subscribed(peerCount: 9)
        let outside = try #require((0..<9).map { peer($0) }.first { !router.mesh.contains($0) })
        let message = GossipMessage(topic: topic, data: [1])
        try router.send([.message(message)], from: router.mesh[0])
        router.gossip.judged(message.id, as: .accept, at: router.now)
        _ = router.gossip.takeActions()
        router.heartbeat(4)
        #expect(router.gossip.actions.compactMap { $0.word(to: outside) } == ["ihave 1", "ihave 1", "ihave 1"])
        #expect(router.gossip.actions.allSatisfy { action in router.mesh.allSatisfy { action.word(to: $0) == nil } })
        _ = router.gossip.takeActions()
        // Three times, no more.
        for _ in 0..<5 { try router.send([.iwant([message.id])], from: outside) }
        #expect(router.words(to: outside) == ["reply", "reply", "reply"])
        router.heartbeat(2)
        #expect(router.gossip.cache.count == 0)
    }

    @Test("A message of this node is served to a peer that requests it")
    func servingOwn() throws {
        var router = try Router.subscribed(peerCount: 1)
        #expect(router.gossip.publish([1], on: topic, at: router.now) == .sent(peerCount: 1))
        _ = router.gossip.takeActions()
        try router.send([.iwant([GossipMessage(topic: topic, data: [1]).id])], from: peer(0))
        #expect(router.words(to: peer(0)) == ["reply"])
    }

    @Test("Unknown messages are requested from at most two peers, within limits")
    func asking() throws {
        var configuration = GossipConfiguration()
        configuration.idLimit = 1500
        var router = try Router.subscribed(peerCount: 4, configuration)
        let known = GossipMessage(topic: topic, data: [0, 0])
        try router.send([.message(known)], from: peer(0))
        _ = router.gossip.takeActions()
        for number in 1...3 as ClosedRange<UInt32> { try router.send([.ihave(topic: topic, ids: ids(0..<10))], from: peer(number)) }
        #expect(router.gossip.actions.compactMap { $0.word(to: peer(1)) } == ["iwant 9"])
        #expect(router.gossip.actions.compactMap { $0.word(to: peer(2)) } == ["iwant 9"])
        #expect(router.words(to: peer(3)) == [])
        try router.send([.ihave(topic: topic, ids: ids(10..<3000))], from: peer(1))
        #expect(router.words(to: peer(1)) == ["iwant 1000", "iwant 491"])
        try router.send([.ihave(topic: "/other", ids: ids(5000..<5001))], from: peer(3))
        #expect(router.gossip.takeActions().isEmpty)
        router.heartbeat()
        _ = router.gossip.takeActions()
        // Ten announcements between two heartbeats.
        for number in 0..<20 { try router.send([.ihave(topic: topic, ids: ids(4000 + number..<4001 + number))], from: peer(2)) }
        #expect(router.words(to: peer(2)).count == 10)
    }

    @Test("Broken promises lower the score; fulfilled ones do not, by whichever peer")
    func promises() throws {
        var router = try Router.subscribed(peerCount: 3)
        let kept = GossipMessage(topic: topic, data: [9, 9])
        try router.send([.ihave(topic: topic, ids: [kept.id])], from: peer(1))
        try router.send([.message(kept)], from: peer(2))
        for _ in 0..<10 {
            try router.send([.ihave(topic: topic, ids: ids(router.now == .zero ? 0..<1 : 1..<2))], from: peer(0))
            router.heartbeat()
        }
        router.heartbeat(4)
        #expect(router.gossip.peers[peer(1)]?.score.behaviour == 0)
        #expect((router.gossip.peers[peer(0)]?.score.behaviour ?? 0) > 2)
        #expect(router.gossip.counters.brokenPromises >= 3)
        // Until its score is too low for further requests.
        for number in 0..<100 {
            try router.send([.ihave(topic: topic, ids: ids(100 + number..<101 + number))], from: peer(0))
            if number.isMultiple(of: 10) { router.heartbeat() }
        }
        router.heartbeat(4)
        #expect(router.gossip.score(peer(0)) < -100)
        _ = router.gossip.takeActions()
        try router.send([.ihave(topic: topic, ids: ids(999..<1000)), .iwant([kept.id])], from: peer(0))
        #expect(router.gossip.takeActions().isEmpty)
    }
}

@Suite("Caches")
struct CachesTests {
    private func id(_ number: Int) -> MessageID {
        MessageID(of: [UInt8(number & 255), UInt8(number >> 8 & 255), UInt8(number >> 16)][...])
    }

    @Test("An id is remembered for at least two minutes, and not much longer")
    func seen() {
        var seen = SeenCache(period: .seconds(120), capacity: 1000)
        #expect(seen.insert(id(1), at: .zero) == true)
        for second in 1...120 {
            #expect(seen.insert(id(1), at: .seconds(second)) == false)
            _ = seen.insert(id(second + 10), at: .seconds(second))
        }
        for second in 121...200 { _ = seen.insert(id(second + 10), at: .seconds(second)) }
        #expect(!seen.contains(id(1)))
        #expect(seen.contains(id(100)))
        #expect(seen.insert(id(5000), at: .seconds(1000)) == true)
        #expect(seen.count == 1)
    }

    @Test("An id is remembered for two minutes although no other follows")
    func seenInSilence() {
        var seen = SeenCache(period: .seconds(120), capacity: 1000)
        for (number, second) in [(1, 0), (2, 29), (3, 149)] { _ = seen.insert(id(number), at: .seconds(second)) }
        #expect(seen.contains(id(2)))
    }

    @Test("The seen cache keeps the latest ids up to its capacity")
    func seenCapacity() {
        var seen = SeenCache(period: .seconds(120), capacity: 100)
        for number in 0..<10_000 {
            #expect(seen.insert(id(number), at: .zero) == true)
            #expect(seen.count <= 100)
        }
        #expect(seen.contains(id(9_999)) && seen.contains(id(9_930)) && !seen.contains(id(9_000)))
    }

    @Test("The message cache is bounded in bytes and keeps the latest messages")
    func messages() {
        var cache = MessageCache(length: 6, gossip: 3, capacity: 10_000)
        var last: GossipMessage?
        for number in 0..<1000 {
            let message = GossipMessage(topic: "/t", data: [UInt8](repeating: 1, count: 90) + [UInt8(number & 255), UInt8(number >> 8)])
            cache.insert(message)
            #expect(cache.byteCount <= 10_000)
            if number.isMultiple(of: 300) { cache.shift() }
            last = message
        }
        #expect(cache.count > 30)
        #expect(cache.reply(last?.id ?? id(0), to: peer(1), limit: 1) != nil)
        for _ in 0..<6 { cache.shift() }
        #expect(cache.count == 0 && cache.byteCount == 0)
    }

    @Test("Scores decay, and positive ones do not outlive the connection")
    func scores() {
        let configuration = ScoreConfiguration()
        var score = PeerScore()
        for _ in 0..<20 { score.deliveredFirst(configuration) }
        #expect(score.value(configuration) == 10)
        score.sentInvalid()
        #expect(score.value(configuration) == -90)
        score.misbehaved(6)
        #expect(score.value(configuration) == -90)
        score.misbehaved(1)
        #expect(score.value(configuration) == -100)
        score.disconnected()
        #expect(score.value(configuration) == -110)
        for _ in 0..<200 { score.decay(configuration) }
        #expect(score.isSpotless && score.value(configuration) == 0)
    }

    @Test("A counter that decays is forgotten below its least value")
    func leastScore() {
        var configuration = ScoreConfiguration()
        (configuration.invalidDecay, configuration.zero) = (0.5, 0.5)
        var score = PeerScore()
        score.sentInvalid()
        score.decay(configuration)
        #expect(score.invalid == 0.5)
        score.decay(configuration)
        #expect(score.isSpotless)
    }
}

@Suite("Hostile peers")
struct HostilePeerTests {
    @Test("Topics, IDONTWANT ids and announcements of a peer are bounded")
    func bounds() throws {
        var router = try Router.subscribed(peerCount: 2)
        for start in stride(from: 0, to: 3000, by: 1000) {
            try router.send((start..<start + 1000).map { .subscription(topic: "/t\($0)", isOn: true) }, from: peer(0))
            let ids = (start..<start + 1000).map { MessageID(of: [UInt8($0 & 255), UInt8($0 >> 8)][...]) }
            try router.send([.idontwant(ids)], from: peer(0))
        }
        #expect(router.gossip.peers[peer(0)]?.topics.count == 200)
        #expect(router.gossip.topics.count == 200)
        #expect(router.gossip.peers[peer(0)]?.unwanted.count == 1000)
        router.gossip.disconnected(peer(0), at: router.now)
        #expect(router.gossip.topics.count == 1)
    }

    @Test("Peers that keep changing their identity use bounded memory")
    func newNames() throws {
        var configuration = GossipConfiguration()
        configuration.score.retainedCount = 50
        var router = try Router.subscribed(peerCount: 0, configuration)
        for number in 0..<20_000 as Range<UInt32> {
            router.gossip.connected(peer(number), version: .v11, isOutbound: false)
            try router.send([.prune(topic: Router.topic, backoff: .seconds(3600))], from: peer(number))
            router.gossip.receivedMalformed(from: peer(number))
            router.gossip.disconnected(peer(number), at: router.now)
        }
        #expect(router.gossip.retained.count == 50)
        #expect(router.gossip.topics[Router.topic]?.backoff.count == 10_000)
        #expect(router.gossip.peers.isEmpty)
    }
}
