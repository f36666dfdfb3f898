import Testing

@testable import SessionProtocol

@Suite struct DeficitTurnsTests {
    @Test func payersGetEqualSharesOfTheCost() {
        var turns = DeficitTurns<String, Int>(quantum: 10, costLimit: 100)
        for number in 0..<100 { turns.append(number, cost: 100, of: "costly") }
        for number in 0..<1_000 { turns.append(number, cost: 5, of: "cheap") }
        var costs: [String: Int] = [:]
        while (costs["cheap"] ?? 0) + (costs["costly"] ?? 0) < 4_000, let next = turns.popFirst() {
            costs[next.payer, default: 0] += next.cost
        }
        #expect(abs((costs["cheap"] ?? 0) - (costs["costly"] ?? 0)) <= 200)
    }

    @Test func aNewcomerWaitsForTwoTurnsOfEachPayer() {
        var turns = DeficitTurns<Int, Int>(quantum: 10, costLimit: 100)
        for number in 0..<1_000 { turns.append(number, cost: 10, of: number % 10) }
        for _ in 0..<100 { _ = turns.popFirst() }
        turns.append(-1, cost: 10, of: -1)
        let next = (0..<22).compactMap { _ in turns.popFirst()?.element }
        #expect(next.contains(-1))
    }

    @Test func elementsOfAPayerKeepTheirOrderAndNoneIsLost() {
        var turns = DeficitTurns<Int, Int>(quantum: 3, costLimit: 7)
        for number in 0..<300 { turns.append(number, cost: number, of: number % 7) }
        #expect(turns.count == 300 && turns.count(of: 0) == 43)
        var last: [Int: Int] = [:]
        while let next = turns.popFirst() {
            #expect(last[next.payer, default: -1] < next.element)
            last[next.payer] = next.element
        }
        #expect(turns.isEmpty && turns.count == 0 && last.count == 7)
    }
}
