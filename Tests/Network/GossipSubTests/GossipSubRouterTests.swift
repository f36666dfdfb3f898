import Core
import TestSupport
import Testing

@testable import GossipSub

/// A router with any number of peers, and short forms for their messages.
struct Router {
    static let topic = "/waku/2/rs/16/32"
    var gossip: GossipSubRouter
    var now = Instant.zero

    init(_ configuration: GossipConfiguration = GossipConfiguration(), seed: UInt64 = 1) {
        gossip = GossipSubRouter(configuration: configuration, seed: seed)
    }

    /// A subscribed router with this many subscribed peers.
    static func subscribed(
        peerCount: Int, version: GossipVersion = .v11, outbound: Int = 0, _ configuration: GossipConfiguration = GossipConfiguration()
    ) throws -> Router {
        var router = Router(configuration)
        router.gossip.subscribe(to: topic, at: .zero)
        for number in 0..<UInt32(peerCount) {
            let peer = PeerNumber(rawValue: number)
            router.gossip.connected(peer, version: version, isOutbound: number < outbound)
            try router.send([.subscription(topic: topic, isOn: true)], from: peer)
        }
        router.heartbeat()
        _ = router.gossip.takeActions()
        return router
    }

    /// Encodes the items, and passes them to the router as received from the peer.
    mutating func send(_ items: [Outgoing], from peer: PeerNumber) throws {
        var queue = OutboundQueue()
        for item in items { #expect(queue.append(item) == .kept) }
        var framing = FrameSplitter(limit: GossipRPC.maximumByteCount)
        while let bytes = queue.nextFrame() {
            framing.append(bytes)
            while let frame = try framing.next() { gossip.received(try GossipRPC(parsing: frame), from: peer, at: now) }
        }
    }

    mutating func heartbeat(_ count: Int = 1) {
        for _ in 0..<count {
            now += .seconds(1)
            gossip.heartbeat(at: now)
        }
    }

    var mesh: [PeerNumber] { gossip.mesh(of: Self.topic) }
}

extension GossipAction {
    /// The kind of item that this action sends to a peer, as a word, for comparisons.
    func word(to peer: PeerNumber) -> String? {
        switch self {
        case .send(let item, let to) where to == peer:
            switch item {
            case .subscription(_, let isOn): isOn ? "subscribe" : "unsubscribe"
            case .graft: "graft"
            case .prune: "prune"
            case .message: "message"
            case .reply: "reply"
            case .ihave(_, let ids): "ihave \(ids.count)"
            case .iwant(let ids): "iwant \(ids.count)"
            case .idontwant(let ids): "idontwant \(ids.count)"
            }
        case .forward(_, let peers) where peers.contains(peer): "forward"
        case .disconnect(peer): "disconnect"
        case .validate(_, from: peer): "validate"
        default: nil
        }
    }
}

extension Router {
    mutating func words(to peer: PeerNumber) -> [String] {
        gossip.takeActions().compactMap { $0.word(to: peer) }
    }
}

func peer(_ number: UInt32) -> PeerNumber { PeerNumber(rawValue: number) }

@Suite("Mesh maintenance")
struct MeshTests {
    private let topic = Router.topic

    @Test("Subscriptions are announced to new peers, and new subscriptions to all peers")
    func subscriptions() {
        var router = Router()
        router.gossip.subscribe(to: topic, at: .zero)
        router.gossip.connected(peer(1), version: .v11, isOutbound: false)
        #expect(router.words(to: peer(1)) == ["subscribe"])
        router.gossip.subscribe(to: "/other", at: .zero)
        #expect(router.words(to: peer(1)) == ["subscribe"])
        router.gossip.unsubscribe(from: topic, at: .zero)
        #expect(router.words(to: peer(1)) == ["unsubscribe"])
        router.gossip.connected(peer(2), version: .v11, isOutbound: false)
        #expect(router.words(to: peer(2)) == ["subscribe"])
        // It is unsubscribed already.
        router.gossip.unsubscribe(from: topic, at: .zero)
        #expect(router.words(to: peer(1)).isEmpty)
    }

    @Test("A heartbeat grafts peers up to the mesh size", arguments: [(3, 3), (6, 6), (20, 6)])
    func grafts(peerCount: Int, expected: Int) throws {
        let router = try Router.subscribed(peerCount: peerCount)
        #expect(router.mesh.count == expected)
        #expect(Set(router.mesh).count == expected)
    }

    @Test("An oversized mesh is pruned, keeping the best-scored and outbound peers")
    func cuts() throws {
        var router = try Router.subscribed(peerCount: 20, outbound: 6)
        // Only peers dialed by this node may join a full mesh.
        for number in (0..<20 as Range<UInt32>).reversed() { try router.send([.graft(topic: topic)], from: peer(number)) }
        #expect(router.mesh.count > 8)
        #expect(router.mesh.count { $0.rawValue < 6 } == 6)
        let best = Array(router.mesh.filter { $0.rawValue >= 6 }.prefix(4))
        for (index, good) in best.enumerated() {
            let message = GossipMessage(topic: topic, data: [UInt8(index)])
            try router.send([.message(message)], from: good)
            router.gossip.judged(message.id, as: .accept, at: router.now)
        }
        router.heartbeat()
        #expect(router.mesh.count == 6)
        #expect(best.count == 4 && best.allSatisfy { router.mesh.contains($0) })
        #expect(router.mesh.count { $0.rawValue < 6 } == 2)
    }

    @Test(arguments: 0..<20 as Range<UInt64>) func anOversizedMeshKeepsTwoOutboundPeers(seed: UInt64) throws {
        var router = Router(seed: seed)
        router.gossip.subscribe(to: topic, at: .zero)
        for number in 0..<14 as Range<UInt32> {
            router.gossip.connected(peer(number), version: .v11, isOutbound: number >= 8)
            try router.send([.subscription(topic: topic, isOn: true)], from: peer(number))
            try router.send([.graft(topic: topic)], from: peer(number))
        }
        #expect(router.mesh.count == 14)
        for number in 0..<4 as Range<UInt32> {
            let message = GossipMessage(topic: topic, data: [UInt8(number)])
            try router.send([.message(message)], from: peer(number))
            router.gossip.judged(message.id, as: .accept, at: router.now)
        }
        router.heartbeat()
        #expect(router.mesh.count == 6)
        #expect(router.mesh.count { $0.rawValue >= 8 } == 2)
    }

    @Test("Outbound peers are grafted below the outbound quota")
    func outbound() throws {
        var router = try Router.subscribed(peerCount: 8)
        for number in [100, 101, 102] as [UInt32] {
            router.gossip.connected(peer(number), version: .v11, isOutbound: true)
            try router.send([.subscription(topic: topic, isOn: true)], from: peer(number))
        }
        router.heartbeat()
        #expect(router.mesh.count { $0.rawValue >= 100 } == 2)
    }

    @Test("Grafts are accepted up to the upper mesh limit, then answered with a prune")
    func takesGrafts() throws {
        var router = try Router.subscribed(peerCount: 20)
        for number in 0..<20 as Range<UInt32> { try router.send([.graft(topic: topic)], from: peer(number)) }
        #expect(router.mesh.count == 8)
        let outside = try #require((0..<20).map { peer($0) }.first { !router.mesh.contains($0) })
        #expect(router.gossip.takeActions().compactMap { $0.word(to: outside) } == ["prune"])
    }

    @Test("Grafts of unsubscribed peers are refused, grafts for unsubscribed topics ignored")
    func strangers() throws {
        var router = try Router.subscribed(peerCount: 1)
        router.gossip.connected(peer(9), version: .v11, isOutbound: false)
        _ = router.gossip.takeActions()
        try router.send([.graft(topic: topic), .graft(topic: "/unknown")], from: peer(9))
        #expect(router.words(to: peer(9)) == ["prune"])
        #expect(!router.mesh.contains(peer(9)))
    }

    @Test("After a prune no graft is sent before the backoff passed")
    func backoff() throws {
        var router = try Router.subscribed(peerCount: 1)
        #expect(router.mesh == [peer(0)])
        try router.send([.prune(topic: topic, backoff: .seconds(30))], from: peer(0))
        #expect(router.mesh.isEmpty)
        router.heartbeat(30)
        #expect(router.mesh.isEmpty)
        router.heartbeat(2)
        #expect(router.mesh == [peer(0)])
        // Nothing of it is left.
        router.heartbeat()
        router.gossip.disconnected(peer(0), at: router.now)
        #expect(!router.gossip.remembers(peer(0)))
    }

    @Test("The backoff of a prune defaults to a minute and is limited to an hour")
    func backoffLimits() throws {
        var router = try Router.subscribed(peerCount: 1)
        let control = field(0x1A, field(0x22, field(0x0A, Array(topic.utf8))))
        router.gossip.received(try GossipRPC(parsing: control), from: peer(0), at: router.now)
        #expect(router.gossip.topics[topic]?.backoff[peer(0)] == router.now + .seconds(60))
        try router.send([.prune(topic: topic, backoff: .seconds(1 << 40))], from: peer(0))
        #expect(router.gossip.topics[topic]?.backoff[peer(0)] == router.now + .seconds(3600))
    }

    @Test("Repeated grafts within the backoff are pruned, then the peer is disconnected")
    func graftFlood() throws {
        var router = try Router.subscribed(peerCount: 1)
        try router.send([.prune(topic: topic, backoff: .seconds(60))], from: peer(0))
        _ = router.gossip.takeActions()
        var words: [String] = []
        for _ in 0..<100 {
            try router.send([.graft(topic: topic)], from: peer(0))
            words += router.words(to: peer(0))
        }
        #expect(words.last == "disconnect")
        #expect(words.dropLast().allSatisfy { $0 == "prune" })
        #expect(words.count < 25)
        #expect(router.mesh.isEmpty)
    }

    @Test("Unsubscribing prunes the mesh and is announced to all peers")
    func leaving() throws {
        var router = try Router.subscribed(peerCount: 2)
        router.gossip.unsubscribe(from: topic, at: router.now)
        #expect(router.words(to: peer(0)) == ["prune", "unsubscribe"])
        #expect(router.mesh.isEmpty)
        try router.send([.message(GossipMessage(topic: topic, data: [1]))], from: peer(0))
        #expect(router.words(to: peer(0)).isEmpty)
    }

    @Test("Peers that unsubscribe or disconnect are replaced in the mesh")
    func replacements() throws {
        var router = try Router.subscribed(peerCount: 7)
        let first = router.mesh[0]
        let second = router.mesh[1]
        try router.send([.subscription(topic: topic, isOn: false)], from: first)
        router.gossip.disconnected(second, at: router.now)
        let third = router.mesh[2]
        router.gossip.disconnected(third, at: router.now)
        #expect(router.mesh.count == 3)
        router.heartbeat()
        #expect(router.mesh.count == 4)
        #expect(!router.mesh.contains(first) && !router.mesh.contains(second) && !router.mesh.contains(third))
    }

    @Test("The topics of a peer that is gone are forgotten")
    func forgottenTopics() throws {
        var router = Router()
        router.gossip.connected(peer(1), version: .v11, isOutbound: false)
        try router.send([.subscription(topic: "/other", isOn: true)], from: peer(1))
        #expect(router.gossip.topics.keys.contains("/other"))
        router.gossip.disconnected(peer(1), at: router.now)
        #expect(router.gossip.topics.isEmpty)
    }

    @Test("Peers with a negative score are pruned at the heartbeat")
    func badPeers() throws {
        var router = try Router.subscribed(peerCount: 5)
        let bad = router.mesh[0]
        let message = GossipMessage(topic: topic, data: [1])
        try router.send([.message(message)], from: bad)
        router.gossip.judged(message.id, as: .reject, at: router.now)
        router.heartbeat()
        #expect(!router.mesh.contains(bad))
        #expect(router.words(to: bad).contains("prune"))
        #expect(router.mesh.count == 4)
    }

    @Test("Parameters out of range are replaced with the nearest in range", arguments: [Int.min, -1, 0, 1, .max])
    func parametersOutOfRange(value: Int) throws {
        for factor in [-1, .infinity, .nan] as [Double] {
            var configuration = GossipConfiguration()
            configuration.gossipFactor = factor
            for count in [\.meshSize, \.meshLow, \.meshBest, \.historyGossip, \.gossipPeerCount, \.idLimit]
                as [WritableKeyPath<GossipConfiguration, Int>]
            {
                var changed = configuration
                changed[keyPath: count] = value
                changed.meshHigh = 2
                var router = try Router.subscribed(peerCount: 12, changed)
                // The mesh gets larger than its size, the message is announced to the peers outside of it.
                for number in 0..<4 as Range<UInt32> { try router.send([.graft(topic: topic)], from: peer(number)) }
                #expect(router.gossip.publish([1], on: topic, at: router.now) != .noPeers)
                router.heartbeat(2)
                #expect(router.gossip.configuration.meshLow <= router.gossip.configuration.meshSize)
                #expect((0...1).contains(router.gossip.configuration.gossipFactor))
            }
        }
    }

    /// The median is 0.
    @Test("Opportunistic grafting adds two peers when the median score is low", arguments: [(1.0, 2), (0.0, 0)])
    func opportunisticGrafting(threshold: Double, addedCount: Int) throws {
        var configuration = GossipConfiguration()
        configuration.score.opportunisticThreshold = threshold
        configuration.score.opportunisticHeartbeats = 1
        configuration.score.decayPeriod = .seconds(1000)
        var router = try Router.subscribed(peerCount: 12, configuration)
        let outside = (0..<12).map { peer($0) }.filter { !router.mesh.contains($0) }
        for (index, good) in outside.prefix(4).enumerated() {
            let message = GossipMessage(topic: topic, data: [UInt8(index)])
            try router.send([.message(message)], from: good)
            router.gossip.judged(message.id, as: .accept, at: router.now)
        }
        router.heartbeat()
        #expect(router.mesh.count == 6 + addedCount)
        #expect(router.mesh.count { outside.prefix(4).contains($0) } == addedCount)
    }
}
