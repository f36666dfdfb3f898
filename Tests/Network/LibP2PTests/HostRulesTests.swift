import Core
import NIOCore
import TestSupport
import Testing

@testable import LibP2P

@Suite struct HostRulesTests {
    private let ids = (0..<3).map { _ in NodeKey.generate().peerID }.sorted()

    private func isKept(_ decision: ConnectionTable<Int>.Decision, replacing expected: Int?) -> Bool {
        if case .keep(let replaced) = decision { replaced == expected } else { false }
    }

    private func isRefused(_ decision: ConnectionTable<Int>.Decision, _ reason: ConnectionError) -> Bool {
        if case .refuse(reason) = decision { true } else { false }
    }

    /// In whichever order the connections are opened, both sides keep the one dialed by the lower id.
    @Test(arguments: [true, false], [true, false])
    func bothSidesKeepTheSameOfTwoSimultaneousConnections(lowersFirstAtLower: Bool, lowersFirstAtHigher: Bool) {
        var atLower = ConnectionTable<Int>(own: ids[0], limit: 10)
        var atHigher = ConnectionTable<Int>(own: ids[1], limit: 10)
        let now = NIODeadline.uptimeNanoseconds(1)
        // Link 0 was dialed by the lower id, link 1 by the higher.
        for link in lowersFirstAtLower ? [0, 1] : [1, 0] { _ = atLower.add(link, to: ids[1], isInbound: link == 1, at: now) }
        for link in lowersFirstAtHigher ? [0, 1] : [1, 0] { _ = atHigher.add(link, to: ids[0], isInbound: link == 0, at: now) }
        #expect(atLower.entries[ids[1]]?.link == 0)
        #expect(atHigher.entries[ids[0]]?.link == 0)
    }

    @Test func aNewerConnectionReplacesTheOlderOne() {
        var table = ConnectionTable<Int>(own: ids[0], limit: 10)
        let start = NIODeadline.uptimeNanoseconds(1)
        #expect(isKept(table.add(0, to: ids[1], isInbound: false, at: start), replacing: nil))
        #expect(isRefused(table.add(1, to: ids[1], isInbound: true, at: start + .seconds(9)), .replaced))
        #expect(isKept(table.add(2, to: ids[1], isInbound: true, at: start + .seconds(10)), replacing: 0))
        #expect(isKept(table.add(3, to: ids[1], isInbound: true, at: start + .seconds(10)), replacing: 2))
        #expect(!table.remove(ids[1]) { $0 == 2 })
        #expect(table.remove(ids[1]) { $0 == 3 })
        #expect(table.entries.isEmpty)
    }

    @Test func connectionsToItselfAndOverTheLimitAreRefused() {
        var table = ConnectionTable<Int>(own: ids[0], limit: 1)
        let now = NIODeadline.uptimeNanoseconds(1)
        #expect(isRefused(table.add(0, to: ids[0], isInbound: true, at: now), .refused))
        #expect(isKept(table.add(1, to: ids[1], isInbound: true, at: now), replacing: nil))
        #expect(isRefused(table.add(2, to: ids[2], isInbound: true, at: now), .refused))
    }

    @Test func backoffDoublesUpToItsLimit() {
        var backoff = DialBackoff(initial: .seconds(1), maximum: .seconds(8))
        var now = Instant.seconds(100)
        for seconds in [1, 2, 4, 8, 8, 8] {
            backoff.failed(ids[0], at: now, jitter: 1)
            now = now + .seconds(seconds)
            #expect(!backoff.mayDial(ids[0], at: now - .nanoseconds(1)))
            #expect(backoff.mayDial(ids[0], at: now))
        }
        backoff.failed(ids[0], at: now, jitter: 0)
        #expect(!backoff.mayDial(ids[0], at: now + .seconds(4) - .nanoseconds(1)) && backoff.mayDial(ids[0], at: now + .seconds(4)))
        backoff.succeeded(ids[0])
        #expect(backoff.mayDial(ids[0], at: now))
    }

    @Test func backoffForgetsThePeerThatIsDueFirst() {
        var backoff = DialBackoff(initial: .seconds(1), capacity: 2)
        for (index, id) in ids.enumerated() { backoff.failed(id, at: .seconds(index), jitter: 1) }
        #expect(ids.map { backoff.mayDial($0, at: .zero) } == [true, false, false])
    }

    @Test func identifyMessagesAreEncodedAndDecoded() throws {
        var info = PeerInfo()
        info.publicKey = NodeKey.generate().publicKey
        info.listenAddresses = [try Multiaddr("/ip4/1.2.3.4/tcp/5")]
        info.protocols = ["/a", "/b"]
        info.observedAddress = try Multiaddr("/ip6/::1/tcp/6")
        info.agentVersion = "a"
        info.protocolVersion = "b"
        #expect(try PeerInfo(parsing: info.encoded()) == info)
        var random = SeededGenerator(seed: 6)
        for _ in 0..<5_000 { _ = try? PeerInfo(parsing: random.damaged(info.encoded())) }
        var many = ProtobufWriter()
        for _ in 0...PeerInfo.protocolLimit { many.field(3, [97]) }
        #expect(throws: ConnectionError.self) { try PeerInfo(parsing: many.bytes) }
        var long = ProtobufWriter()
        long.field(3, [UInt8](repeating: 97, count: 257))
        #expect(throws: ConnectionError.self) { try PeerInfo(parsing: long.bytes) }
    }

    /// A peer may repeat the parts that take time.
    @Test func identifyMessagesHaveOneKeyAndFewAddresses() throws {
        let (key, address) = (NodeKey.generate().publicKey, try Multiaddr("/ip4/1.2.3.4/tcp/5"))
        var repeated = ProtobufWriter()
        for _ in 0..<3 { repeated.field(1, [0xFF]) }
        repeated.field(1, key.encoded())
        // Those of other transports count.
        for _ in 1..<PeerInfo.addressLimit { repeated.field(2, [0x91, 2, 1]) }
        for _ in 0..<2 { repeated.field(2, address.encoded()) }
        let info = try PeerInfo(parsing: repeated.bytes)
        #expect(info.publicKey == key && info.listenAddresses == [address])
        repeated.field(1, [0xFF])
        #expect(throws: ConnectionError.self) { try PeerInfo(parsing: repeated.bytes) }
    }
}
