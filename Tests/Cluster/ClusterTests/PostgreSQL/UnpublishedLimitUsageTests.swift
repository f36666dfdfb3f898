@testable import Cluster
import Delivery
import Testing

@Suite struct UnpublishedLimitUsageTests {
    private let node = NodeID(rawValue: 0xAB)
    private let number = ProtocolNumber(rawValue: 2)

    @Test func equalTakesAreAddedUp() throws {
        var takes = UnpublishedLimitUsage()
        takes.add("a:01", of: number, 2)
        takes.add("a:01", of: number, 3)
        takes.add("a:01", of: ProtocolNumber(rawValue: 1), 1)
        let taken = takes.take()
        #expect(takes.isEmpty)
        #expect(Set(taken.payloads(from: node)) == ["00000000000000ab 2 5 a:01", "00000000000000ab 1 1 a:01"])
        takes.add("a:01", of: number, 1)
        takes.putBack(taken)
        #expect(takes.costs.values.sorted() == [1, 6])
        let parsed = try #require(UnpublishedLimitUsage.parse("00000000000000ab 2 5 a:01"))
        #expect(parsed == (node, number, "a:01", 5))
    }

    @Test func theyAreBounded() {
        var takes = UnpublishedLimitUsage()
        for index in 0...UnpublishedLimitUsage.limit { takes.add("a:\(index)", of: number, .max) }
        takes.add("a:0", of: number, 1)
        #expect(takes.costs.count == UnpublishedLimitUsage.limit)
    }

    @Test(arguments: ["", "x", "00 2 5", "zz 2 5 a", "00 b 5 a", "00 2 0 a", "00 2 -1 a", "00 2 99999999999999999999 a"])
    func othersAreNone(payload: String) {
        #expect(UnpublishedLimitUsage.parse(payload) == nil)
    }
}
