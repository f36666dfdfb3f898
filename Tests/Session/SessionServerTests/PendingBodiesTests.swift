import Core
import SessionProtocol
import Testing

@testable import SessionServer

@Suite("Session: bodies that wait for the store") struct PendingBodiesTests {
    private let attacker = SenderNetwork(IPAddress("192.0.2.7"))
    private let honest = SenderNetwork(IPAddress("198.51.100.1"))

    private func size(_ network: SenderNetwork, _ byteCount: Int, _ requestCount: Int = 1) -> PendingBodySize {
        PendingBodySize(network: network, byteCount: byteCount, requestCount: requestCount)
    }

    /// Arrays of renewals: each costs the store as much as hundreds of small bodies.
    @Test func aSmallBodyIsNextWhileLargeOnesOfAnotherNetworkWait() {
        var pending = PendingBodies<Int>(byteLimit: 32 << 20)
        let large = size(attacker, 100_000, 315)
        func add(_ bodies: Range<Int>, _ size: PendingBodySize) -> Int { bodies.count { pending.add($0, size) } }
        func next(_ count: Int = 1) -> [Int] { (0..<count).compactMap { _ in pending.next()?.body } }
        #expect(add(0..<100, large) == 100)
        // The store has these two; it carries them out first.
        #expect(next(3) == [0, 1])
        #expect(add(-1..<0, size(honest, 600)) == 1)
        #expect(next() == [])
        pending.finish(large)
        #expect(next() == [-1])
        // As many requests of both, if both have many.
        #expect(add(1000..<1100, size(honest, 100_000, 315)) == 100)
        var bodies: [Int] = []
        for _ in 0..<40 {
            pending.finish(large)
            bodies += next()
        }
        #expect(bodies.count == 40 && 18...22 ~= bodies.count { $0 >= 1000 })
    }

    @Test func aNetworkLeavesRoomForOthers() {
        var pending = PendingBodies<Int>(byteLimit: 1000)
        func add(_ size: PendingBodySize) -> Bool { pending.add(0, size) }
        #expect([501, 300, 200, 1].map { add(size(attacker, $0)) } == [false, true, true, false])
        #expect(add(size(honest, 200)))
        // Room is free once a body is committed, not when it is given to the store.
        _ = pending.next()
        #expect(!add(size(attacker, 1)))
        pending.finish(size(attacker, 300))
        #expect(add(size(attacker, 100)))
    }

    @Test func smallBodiesAreBoundedByTheirNumber() {
        var pending = PendingBodies<Int>(byteLimit: 32 << 20)
        func add(_ count: Int, _ network: SenderNetwork) -> Int { (0..<count).count { pending.add($0, size(network, 600)) } }
        #expect(add(5000, attacker) == 2048)
        #expect(add(1, honest) == 1)
    }
}
