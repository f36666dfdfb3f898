import Core
import RateLimits
import Testing
import WakuCrypto

@testable import PushNode

@Suite("Turns of large requests")
struct LargeRequestTurnsTests {
    private static let hasher = PayerHasher(key: .random())

    private static func charge(_ number: UInt8, _ standing: Standing = .stranger) -> Charge {
        Charge(hasher.payer(.registrant, [number]), standing)
    }

    @Test("One transaction is committed at a time, and the parts of several payers in turn")
    func turns() {
        var turns = LargeRequestTurns<String>(capacity: 100)
        for part in ["a1", "a2", "a3"] { turns.add(part, size: 64, by: Self.charge(1)) }
        turns.add("b1", size: 64, by: Self.charge(2))
        var order: [String] = []
        while case let parts = turns.next(), !parts.isEmpty {
            #expect(parts.count == 1)
            order += parts
            let besides = turns.next()
            #expect(besides.isEmpty)
            turns.ended()
        }
        #expect(order.firstIndex(of: "b1") == 1, "\(order)")
        #expect(order.filter { $0.hasPrefix("a") } == ["a1", "a2", "a3"])
    }

    @Test("A transaction has parts of up to 64 devices, and at least one")
    func sizes() {
        var turns = LargeRequestTurns<Int>(capacity: 1000)
        for number in 0..<100 { turns.add(number, size: 20, by: Self.charge(UInt8(number))) }
        var counts: [Int] = []
        while case let parts = turns.next(), !parts.isEmpty {
            counts.append(parts.count)
            turns.ended()
        }
        #expect(counts == Array(repeating: 4, count: 25))
    }

    /// A flood of requests with 1,000 devices each by throw-away keys; each part takes as long as another.
    @Test("A request about a known registrant has its turn beside a flood by strangers")
    func known() throws {
        var turns = LargeRequestTurns<Int>(capacity: 16_384)
        for stranger in 1...200 { turns.add(stranger, size: 64, by: Self.charge(UInt8(stranger))) }
        turns.add(0, size: 64, by: Self.charge(0, .known))
        var waited = 0
        while let part = turns.next().first, part != 0 {
            turns.ended()
            turns.add(part, size: 64, by: Self.charge(UInt8(part)))
            waited += 1
        }
        #expect(waited <= 4)
    }
}
