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

    @Test("One part is committed at a time, and those of several payers in turn")
    func turns() {
        var turns = LargeRequestTurns<String>(capacity: 100)
        turns.add("a1", by: Self.charge(1))
        turns.add("a2", by: Self.charge(1))
        turns.add("a3", by: Self.charge(1))
        turns.add("b1", by: Self.charge(2))
        var order: [String] = []
        while let part = turns.next() {
            order.append(part)
            let besides = turns.next()
            #expect(besides == nil)
            turns.ended()
        }
        #expect(order.firstIndex(of: "b1") == 1, "\(order)")
        #expect(order.filter { $0.hasPrefix("a") } == ["a1", "a2", "a3"])
    }

    /// A flood of requests with 1,000 devices each by throw-away keys; each part takes as long as another.
    @Test("A request about a known registrant has its turn beside a flood by strangers")
    func known() throws {
        var turns = LargeRequestTurns<Int>(capacity: 16_384)
        for stranger in 1...200 { turns.add(stranger, by: Self.charge(UInt8(stranger))) }
        turns.add(0, by: Self.charge(0, .known))
        var waited = 0
        while let part = turns.next(), part != 0 {
            turns.ended()
            turns.add(part, by: Self.charge(UInt8(part)))
            waited += 1
        }
        #expect(waited <= 4)
    }
}
