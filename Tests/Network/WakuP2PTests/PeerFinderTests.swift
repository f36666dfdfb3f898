import LibP2P
import NIOCore
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import WakuP2P

@Suite("Finding peers", .timeLimit(.minutes(5)))
struct PeerFinderTests {
    private func record(
        _ key: PrivateKey = .generate(), ip: [UInt8] = [127, 0, 0, 1], port: UInt16 = 60000, shards: [UInt8] = [0, 16, 1, 0, 32]
    ) throws -> NodeRecord {
        try NodeRecord(
            parsing: NodeRecordTests.record(
                [("ip", ip), ("tcp", [UInt8(port >> 8), UInt8(port & 255)]), ("rs", shards)], by: key))
    }

    private func finder(target: Int = 3) -> PeerFinder {
        var limits = PeerFinder.Limits()
        limits.target = target
        limits.dialCount = 2
        limits.candidateCount = 10
        return PeerFinder(own: NodeKey.generate().peerID, limits: limits, generator: SeededGenerator(seed: 1))
    }

    @Test("Lists are read every minute with too few peers, every hour with enough")
    func reading() {
        var finder = finder()
        var times: [Int] = []
        for (second, peerCount) in [(5, 0), (64, 0), (65, 2), (200, 3), (3665, 3)]
        where finder.wantsReading(peerCount: peerCount, at: .seconds(second)) { times.append(second) }
        #expect(times == [5, 65, 3665])
    }

    @Test("Nodes of other clusters and shards, and this node, are skipped; candidates are bounded")
    func candidates() throws {
        let key = PrivateKey.generate()
        var finder = PeerFinder(own: NodeKey(key).peerID)
        let records = [
            try record(key), try record(shards: [0, 1, 1, 0, 32]), try record(shards: [0, 16, 1, 0, 33]), try record(port: 0),
            try record(shards: [9]),
        ]
        finder.found(records, clusterID: 16, shards: [32])
        // The last peer reports no cluster.
        #expect(finder.candidateCount == 1)
        var small = self.finder()
        small.found(try (0..<20).map { _ in try record() }, clusterID: 16, shards: [32])
        #expect(small.candidateCount == 10)
    }

    @Test func aNodeWhoseDialFailedMakesRoomForANewOne() throws {
        var finder = finder()
        finder.found(try (0..<10).map { _ in try record() }, clusterID: 16, shards: [32])
        let listed = finder.listedPeers
        let dialed = finder.toDial(connected: [], peerCount: 0, at: .zero).compactMap(\.peerID)
        try #require(dialed.count == 2)
        finder.dialed(dialed[0], isGood: false, at: .zero, jitter: 0)
        finder.dialed(dialed[1], isGood: true, at: .zero, jitter: 0)
        let new = try record()
        finder.found([new, try record()], clusterID: 16, shards: [32])
        #expect(finder.candidateCount == 10)
        #expect(listed.subtracting(finder.listedPeers) == [dialed[0]])
    }

    @Test("Missing peers are dialed, a few at a time, with backoff after failures")
    func dialing() throws {
        var finder = finder()
        finder.found(try (0..<3).map { _ in try record() }, clusterID: 16, shards: [32])
        let first = finder.toDial(connected: [], peerCount: 0, at: .zero)
        #expect(first.count == 2)
        let none = finder.toDial(connected: [], peerCount: 0, at: .zero)
        #expect(none.isEmpty)
        let peers = first.compactMap(\.peerID)
        finder.dialed(peers[0], isGood: true, at: .zero, jitter: 0)
        finder.dialed(peers[1], isGood: false, at: .zero, jitter: 1)
        let second = finder.toDial(connected: [peers[0]], peerCount: 1, at: .zero)
        let other = try #require(second.first?.peerID)
        #expect(second.count == 1 && !peers.contains(other))
        finder.dialed(other, isGood: true, at: .zero, jitter: 0)
        let third = finder.toDial(connected: [peers[0], other], peerCount: 2, at: .milliseconds(900))
        let fourth = finder.toDial(connected: [peers[0], other], peerCount: 2, at: .milliseconds(1100))
        #expect(third.isEmpty && fourth.map(\.peerID) == [peers[1]])
        var rest = PeerFinder(own: NodeKey.generate().peerID)
        rest.found([], clusterID: 16, shards: [])
        let nobody = rest.toDial(connected: [], peerCount: 0, at: .zero)
        #expect(nobody.isEmpty)
    }

    @Test("Nodes that left the lists are no longer dialed after a complete reading")
    func departedNodes() throws {
        var finder = finder()
        let (staying, departed) = (try record(), try record())
        finder.found([staying, departed], clusterID: 16, shards: [32])
        let new = try record()
        finder.found([new], clusterID: 16, shards: [32])
        #expect(finder.candidateCount == 3)
        finder.found([staying, new], isComplete: true, clusterID: 16, shards: [32])
        #expect(finder.candidateCount == 2)
        let dialed = finder.toDial(connected: [], peerCount: 0, at: .zero)
        #expect(Set(dialed) == Set([staying, new].flatMap(\.dialAddresses)))
        // A dial in progress may end after its node left.
        finder.found([], isComplete: true, clusterID: 16, shards: [32])
        for address in dialed { finder.dialed(try #require(address.peerID), isGood: true, at: .zero, jitter: 0) }
        #expect(finder.candidateCount == 0 && !finder.isDialing)
    }

    @Test("The dial addresses of a record are IPv4, then multiaddrs, then IPv6")
    func addresses() throws {
        let key = PrivateKey.generate()
        let peer = NodeKey(key).peerID
        let name: [UInt8] = [54, 1, 0x78, 6, 0x1F, 0x90]
        let websocket: [UInt8] = name + [0xDD, 0x03]
        let (ip4, names): ([(String, [UInt8])], [(String, [UInt8])]) = (
            [("ip", [127, 0, 0, 1])], [("multiaddrs", [0, 8] + websocket + [0, 6] + name)]
        )
        let (ip6, tcp): ([(String, [UInt8])], [(String, [UInt8])]) = (
            [("ip6", [UInt8](repeating: 0, count: 15) + [1])], [("tcp", [1]), ("tcp6", [9])]
        )
        func addresses(_ pairs: [(String, [UInt8])]) throws -> [String] {
            try NodeRecord(parsing: NodeRecordTests.record(pairs, by: key)).dialAddresses.map(\.description)
        }
        let texts = ["/ip4/127.0.0.1/tcp/1/p2p/\(peer)", "/dns4/x/tcp/8080/p2p/\(peer)", "/ip6/::1/tcp/9/p2p/\(peer)"]
        #expect(try addresses(ip4 + ip6 + names + tcp) == texts)
        #expect(try addresses(names) == [texts[1]])
        #expect(try addresses(ip6 + [("tcp6", [9])]) == [texts[2]])
        #expect(try addresses([]).isEmpty)
    }

    @Test("After a failed dial, the next address of the node is dialed, also when the list is read again")
    func nextAddress() throws {
        let record = try NodeRecord(
            parsing: NodeRecordTests.record(
                [("ip", [127, 0, 0, 1]), ("ip6", [UInt8](repeating: 0, count: 15) + [1]), ("tcp", [1]), ("tcp6", [9])], by: .generate()))
        let peer = try #require(record.dialAddresses.first?.peerID)
        var finder = finder()
        var dialed: [Multiaddr] = []
        for second in 0..<3 {
            finder.found([record], clusterID: 16, shards: [32])
            // The backoff is over.
            dialed += finder.toDial(connected: [], peerCount: 0, at: .seconds(1000 * second))
            finder.dialed(peer, isGood: false, at: .seconds(1000 * second), jitter: 1)
        }
        #expect(dialed == [record.dialAddresses[0], record.dialAddresses[1], record.dialAddresses[0]])
        finder.found([record], clusterID: 16, shards: [32])
        #expect(finder.toDial(connected: [], peerCount: 0, at: .seconds(9000)) == [record.dialAddresses[1]])
        finder.dialed(peer, isGood: true, at: .seconds(9000), jitter: 1)
        #expect(finder.toDial(connected: [], peerCount: 0, at: .seconds(9001)) == [record.dialAddresses[1]])
    }

    /// The list entry of a node on this machine.
    static func text(of key: PrivateKey, port: UInt16) -> String {
        let pairs: [(String, [UInt8])] = [
            ("ip", [127, 0, 0, 1]), ("tcp", [UInt8(port >> 8), UInt8(port & 255)]), ("rs", [0, 16, 1, 0, 32]),
        ]
        return "enr:" + Base64URL.encode(NodeRecordTests.record(pairs, by: key))
    }

    /// From DNS to received messages.
    @Test("A relay with only a node list finds the reachable nodes on it")
    func relay() async throws {
        var tree = Tree(domain: "nodes.test")
        var nodes: [RunningRelay] = []
        var texts: [String] = []
        for _ in 0..<2 {
            let key = PrivateKey.generate()
            let node = RunningRelay(
                P2PRelay.Configuration(key: NodeKey(key), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")]))
            texts.append(Self.text(of: key, port: try #require(try await node.address().endpoint?.port)))
            nodes.append(node)
        }
        let unreachable = try ReservedPort()
        texts.append(Self.text(of: .generate(), port: unreachable.number))
        tree.sign(nodes: texts, links: [])
        let server = try await DNSServer(tree.zone)
        var configuration = P2PRelay.Configuration(key: .generate())
        configuration.nodeLists = [try NodeTreeURL(parsing: tree.url)]
        configuration.dns = server.client
        let finder = RunningRelay(configuration)
        try await eventually { finder.relay.peers.count { !$0.meshes.isEmpty } == 2 }
        let message = WakuMessage(payload: [1], contentTopic: ContentTopic(TopicTag(of: "chat")), timestamp: .now())
        try await finder.relay.publish(message, on: .statusDefault)
        let others = nodes
        try await eventually { others.allSatisfy { $0.received.map(\.message) == [message] } }
        for node in nodes + [finder] { await node.stop() }
        withExtendedLifetime(unreachable) {}
    }

    @Test func aListedNodeThatRelaysAnotherShardIsDisconnectedAfterTheTrial() async throws {
        var tree = Tree(domain: "nodes.test")
        var nodes: [RunningRelay] = []
        var texts: [String] = []
        for topic in [PubsubTopic.statusDefault, PubsubTopic(rawValue: "/waku/2/rs/16/1")] {
            let key = PrivateKey.generate()
            nodes.append(
                RunningRelay(
                    P2PRelay.Configuration(
                        key: NodeKey(key), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")], pubsubTopics: [topic])))
            texts.append(Self.text(of: key, port: try #require(try await nodes[nodes.count - 1].address().endpoint?.port)))
        }
        tree.sign(nodes: texts, links: [])
        let server = try await DNSServer(tree.zone)
        var configuration = P2PRelay.Configuration(key: .generate())
        configuration.nodeLists = [try NodeTreeURL(parsing: tree.url)]
        configuration.dns = server.client
        configuration.peerTrial = .seconds(2)
        let finder = RunningRelay(configuration)
        let (right, other) = (nodes[0].relay.host.peerID, nodes[1].relay.host.peerID)
        try await eventually { Set(finder.relay.gossipPeers.map(\.peer)) == [right, other] }
        try await eventually { finder.relay.gossipPeers.map(\.peer) == [right] }
        #expect(finder.relay.workingPeers == [right])
        for node in nodes + [finder] { await node.stop() }
    }

    @Test("A DNS server that does not answer is named in the log before its limit has passed")
    func hangingServer() async throws {
        let server = try await DNSServer([:]) { _ in [] }
        var configuration = P2PRelay.Configuration(key: .generate())
        configuration.nodeLists = [try NodeTreeURL(parsing: Tree(domain: "nodes.test").url)]
        configuration.dns = server.client
        configuration.dns.timeout = .minutes(10)
        let log = RecordedLog()
        let finder = RunningRelay(configuration, logger: log.logger)
        try await eventually { log.contains("waiting for the DNS server") }
        // A look-up in progress does not delay the end.
        await finder.stop()
        #expect(!log.contains("no nodes found"))
    }

    @Test("Nodes are dialed while the rest of the list is read")
    func dialingWhileReading() async throws {
        let key = PrivateKey.generate()
        let node = RunningRelay(
            P2PRelay.Configuration(key: NodeKey(key), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")]))
        let text = Self.text(of: key, port: try #require(try await node.address().endpoint?.port))
        let missing = (0..<20).map { Self.text(of: .generate(), port: $0 + 1) }
        var tree = Tree(domain: "nodes.test")
        tree.sign(nodes: missing + [text], links: [])
        for text in missing { tree.zone["\(tree.add(text)).nodes.test"] = nil }
        // Once it has answered with the node, it no longer answers for the missing names.
        let hasAnswered = Mutex(false)
        let server = try await DNSServer(tree.zone) { answer in
            hasAnswered.withLock { hasAnswered in
                if String(decoding: answer, as: UTF8.self).contains("enr:") { hasAnswered = true } else if hasAnswered { return [] }
                return [answer]
            }
        }
        var configuration = P2PRelay.Configuration(key: .generate())
        configuration.nodeLists = [try NodeTreeURL(parsing: tree.url)]
        configuration.dns = server.client
        configuration.dns.timeout = .seconds(30)
        let finder = RunningRelay(configuration)
        try await eventually(within: .seconds(20)) { finder.relay.peers.contains { !$0.meshes.isEmpty } }
        for relay in [node, finder] { await relay.stop() }
    }
}
