import Core
import NIOCore
import Testing

@testable import LibP2P

@Suite struct InboundTableTests {
    private static let start = NIODeadline.uptimeNanoseconds(1)
    private let peers = (0..<400).map { _ in PeerID(NodeKey.generate(.ed25519).publicKey) }

    private func table(_ change: (inout HostConfiguration) -> Void = { _ in }) -> InboundTable<Int> {
        var configuration = HostConfiguration()
        change(&configuration)
        return InboundTable(configuration)
    }

    /// nil when refused; -1 when no handshake was displaced.
    private func admit(_ table: inout InboundTable<Int>, _ id: Int, _ address: String, at second: Int64 = 0) -> Int? {
        switch table.admit(id, from: IPAddress(address), at: Self.start + .seconds(second)) {
        case .refused: nil
        case .admitted(let displaced): displaced ?? -1
        }
    }

    /// nil when refused; -1 when no peer was evicted.
    private func secure(_ table: inout InboundTable<Int>, _ id: Int, at second: Int64 = 0) -> Int? {
        switch table.secured(id, as: peers[id], at: Self.start + .seconds(second)) {
        case .refused: nil
        case .kept(let evicted): evicted ?? -1
        }
    }

    /// nil when refused at either step.
    private func connect(_ table: inout InboundTable<Int>, _ id: Int, _ address: String, at second: Int64 = 0) -> Int? {
        guard admit(&table, id, address, at: second) != nil else { return nil }
        return secure(&table, id, at: second)
    }

    @Test func connectionsOfABlockHaveALimit() {
        for block in ["192.0.2.", "2001:db8::"] {
            var table = table { $0.inboundLimitPerBlock = 3 }
            for id in 0..<3 { #expect(connect(&table, id, "\(block)\(id)") == -1) }
            // Another address of the same block, and another block.
            #expect(connect(&table, 3, "\(block)99") == nil)
            #expect(connect(&table, 4, "198.51.100.1") == -1)
            table.left(1)
            #expect(connect(&table, 5, "\(block)99") == -1)
            #expect(table.count == 4)
        }
    }

    @Test func idlePeersOfABlockAreEvictedAfterAWhile() {
        var table = table { $0.inboundLimitPerBlock = 2 }
        for id in 0..<2 { #expect(connect(&table, id, "192.0.2.1") == -1) }
        #expect(connect(&table, 2, "192.0.2.1", at: 59) == nil)
        table.rate([peers[0]: PeerStanding(isNeeded: true)], at: Self.start + .seconds(60))
        #expect(connect(&table, 3, "192.0.2.1", at: 60) == 1)
        // One peer is needed, the other has just connected.
        #expect(connect(&table, 4, "192.0.2.1", at: 61) == nil)
    }

    @Test func handshakesOfABlockHaveALimit() {
        var table = table { $0.handshakeLimitPerBlock = 2 }
        for id in 0..<2 { #expect(admit(&table, id, "192.0.2.\(id)") == -1) }
        #expect(admit(&table, 2, "192.0.2.2") == nil)
        #expect(admit(&table, 3, "192.0.3.2") == -1)
        #expect(secure(&table, 0) == -1)
        #expect(admit(&table, 2, "192.0.2.2") == -1)
        #expect(table.handshakeCount == 3)
    }

    /// 32 half-open connections from two addresses used to block all other nodes.
    @Test func halfOpenConnectionsOfAFewBlocksDoNotBlockOthers() {
        var table = table {
            $0.handshakeLimit = 8
            $0.handshakeLimitPerBlock = 4
        }
        for id in 0..<8 { #expect(admit(&table, id, "192.0.\(id % 2).1") == -1) }
        // The oldest handshakes of the largest blocks, in turns.
        for (id, displaced) in zip(8..<12, 0..<4) {
            #expect(admit(&table, id, "198.51.\(id).1") == displaced)
            table.left(displaced)
            #expect(secure(&table, id) == -1)
            #expect(admit(&table, 100 + id, "192.0.\(id % 2).1") == -1)
        }
        // The attacker's own handshakes displace none: its blocks have the most.
        #expect(admit(&table, 50, "192.0.0.9") == nil)
        // A displaced connection that is still closing uses no slot, and can't become a peer.
        #expect(admit(&table, 12, "198.51.12.1") != nil)
        #expect(table.handshakeCount == 8)
    }

    @Test func handshakesFromOneBlockEachAreDisplacedInTheirOrder() {
        var table = table { $0.handshakeLimit = 3 }
        for id in 0..<3 { #expect(admit(&table, id, "192.0.\(id).1") == -1) }
        #expect(admit(&table, 3, "198.51.100.1") == 0)
        #expect(secure(&table, 0) == nil)
        // A second handshake from the same block displaces none.
        #expect(admit(&table, 4, "198.51.100.2") == nil)
    }

    /// 200 idle peers from 13 addresses used to block all other nodes.
    @Test func idlePeersDoNotBlockOthers() {
        var table = table()
        for id in 0..<200 { #expect(connect(&table, id, "192.0.\(id / 16).\(id)", at: Int64(id)) == -1) }
        // The oldest peers of the most crowded blocks are evicted.
        var evicted: [Int] = []
        for id in 200..<213 {
            guard let other = connect(&table, id, "198.51.\(id).1", at: 300) else { break }
            evicted.append(other)
            table.left(other)
        }
        #expect(evicted == [0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 1])
        #expect(table.count == 200)
        // The peer that is alone in its block stays, even if the attacker reconnects.
        for id in 300..<310 { #expect((connect(&table, id, "192.0.\(id - 300).99", at: 400) ?? 300) < 200) }
    }

    @Test func theLeastUsefulIsEvicted() {
        var table = table { $0.inboundLimit = 8 }
        for id in 0..<8 { #expect(connect(&table, id, "192.0.\(id).1", at: Int64(id)) == -1) }
        // 0 is in the mesh; 1 left it later than 5's last activity; 2 and 3 deliver messages and are the protected quarter; 4 delivered one long ago.
        table.rate([peers[4]: PeerStanding(messageCount: 1)], at: Self.start + .seconds(10))
        table.rate(
            [
                peers[0]: PeerStanding(isNeeded: true), peers[1]: PeerStanding(isNeeded: true), peers[2]: PeerStanding(messageCount: 9),
                peers[3]: PeerStanding(messageCount: 8), peers[4]: PeerStanding(messageCount: 1), peers[5]: PeerStanding(messageCount: 1),
            ], at: Self.start + .seconds(400))
        table.rate(
            [
                peers[0]: PeerStanding(isNeeded: true), peers[2]: PeerStanding(messageCount: 9), peers[3]: PeerStanding(messageCount: 8),
                peers[4]: PeerStanding(messageCount: 1), peers[5]: PeerStanding(messageCount: 1),
            ], at: Self.start + .seconds(500))
        var evicted: [Int] = []
        for id in 10..<15 {
            guard let other = connect(&table, id, "198.51.\(id).1", at: 501) else { break }
            evicted.append(other)
            table.left(other)
            // The new peers are needed, so that they are not evicted again.
            table.rate(
                [
                    peers[0]: PeerStanding(isNeeded: true), peers[2]: PeerStanding(messageCount: 9),
                    peers[3]: PeerStanding(messageCount: 8),
                    peers[5]: PeerStanding(messageCount: 1),
                ].merging((10...id).map { (peers[$0], PeerStanding(isNeeded: true)) }) { first, _ in first }, at: Self.start + .seconds(502)
            )
        }
        #expect(evicted == [6, 7, 4, 1, 5])
        // Only the two best peers and those in the mesh are left.
        #expect(connect(&table, 20, "198.51.20.1", at: 503) == nil)
    }

    @Test func exemptAddressesAreNotCountedByBlocksNorEvicted() {
        var table = table {
            $0.exemptAddresses = AddressRange.privateNetworks
            $0.inboundLimit = 4
            $0.inboundLimitPerBlock = 1
            $0.handshakeLimitPerBlock = 1
            $0.handshakeLimit = 3
        }
        for id in 0..<3 { #expect(admit(&table, id, "10.0.0.\(id)") == -1) }
        // They lose no handshake slot.
        #expect(admit(&table, 3, "192.0.2.1") == nil)
        for id in 0..<3 { #expect(secure(&table, id) == -1) }
        #expect(connect(&table, 3, "192.0.2.1") == -1)
        #expect(connect(&table, 4, "198.51.100.1", at: 5) == 3)
        #expect(connect(&table, 5, "10.0.0.9", at: 6) == 4)
        #expect(connect(&table, 6, "192.0.2.1", at: 1000) == nil)
    }

    @Test func aReconnectingPeerReplacesItsOldConnection() {
        var table = table { $0.inboundLimit = 2 }
        for id in 0..<2 { #expect(connect(&table, id, "192.0.\(id).1") == -1) }
        #expect(admit(&table, 2, "198.51.100.1") == -1)
        guard case .kept(nil) = table.secured(2, as: peers[1], at: Self.start) else {
            Issue.record("somebody was evicted")
            return
        }
    }

    @Test func aRefusedReconnectionLeavesTheOldConnectionCounted() {
        var table = table { $0.inboundLimitPerBlock = 1 }
        for id in 0..<2 { #expect(connect(&table, id, "192.0.\(id).1") == -1) }
        for id in 2..<4 { #expect(admit(&table, id, "192.0.1.2", at: 60) == -1) }
        #expect(secure(&table, 2, at: 60) == 1)
        // The peer of the first connection, from the block whose only place has just been taken.
        guard case .refused = table.secured(3, as: peers[0], at: Self.start + .seconds(60)) else {
            Issue.record("somebody was evicted")
            return
        }
        table.rate([peers[0]: PeerStanding(isNeeded: true)], at: Self.start + .seconds(61))
        #expect(table.neededCount == 1)
        #expect(connect(&table, 4, "192.0.0.2", at: 62) == nil)
    }

    @Test func memoryIsReleasedFromTheLeastUsefulPeersFirst() {
        var table = table()
        for id in 0..<5 { #expect(connect(&table, id, "192.0.\(id).1") == -1) }
        table.rate(
            [peers[0]: PeerStanding(isNeeded: true), peers[1]: PeerStanding(messageCount: 1)], at: Self.start + .seconds(1))
        let held = [peers[0]: 900_000, peers[1]: 800_000, peers[2]: 1_000, peers[3]: 200_000, peers[4]: 300_000]
        func exceeding(_ limit: Int) -> [Int] {
            var copy = table
            return copy.exceeding(limit, shared: 0, waiting: [:], at: Self.start + .seconds(2)) { held[$0] ?? 0 }
        }
        #expect(exceeding(2_201_000) == [])
        #expect(exceeding(2_200_999) == [4])
        #expect(exceeding(1_900_000) == [4, 3])
        #expect(exceeding(1_700_000) == [4, 3, 1])
        // A peer that uses almost no memory stays.
        #expect(exceeding(0) == [4, 3, 1, 0])
        // What waits for several peers counts once, and for the choice of peers with each.
        func exceeding(_ limit: Int, waiting: [PeerID: Int]) -> [Int] {
            var copy = table
            return copy.exceeding(limit, shared: 500_000, waiting: waiting, at: Self.start + .seconds(2)) { held[$0] ?? 0 }
        }
        #expect(exceeding(2_701_000, waiting: [peers[2]: 500_000, peers[3]: 500_000]) == [])
        #expect(exceeding(2_700_999, waiting: [peers[2]: 500_000, peers[3]: 500_000]) == [3])
        // Closing connections no longer count.
        #expect(table.exceeding(1_900_000, shared: 0, waiting: [:], at: Self.start) { held[$0] ?? 0 } == [4, 3])
        #expect(table.exceeding(1_900_000, shared: 0, waiting: [:], at: Self.start) { held[$0] ?? 0 } == [])
    }
}
