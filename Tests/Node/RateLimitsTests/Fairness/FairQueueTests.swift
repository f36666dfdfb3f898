import Core
import Testing
import TestSupport

@testable import RateLimits

@Suite struct FairQueueTests {
    static func payer(_ number: Int, _ kind: Payer.Kind = .key) -> Payer {
        var mixer = SplitMix64(seed: UInt64(bitPattern: Int64(number)))
        return Payer(kind: kind, digest: (mixer.next(), mixer.next()))
    }

    private func check(_ cost: Int?) { #expect(cost != nil, "held once") }

    /// Random additions, removals and turns.
    @Test(arguments: 1...8) func capacityHoldsAndNothingIsLost(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let capacity = Int.random(in: 1...5_000, using: &random)
        var space = FairSpace<Int>(
            capacity: capacity, quantum: .random(in: 1...50, using: &random), newPayersFirst: .random(using: &random),
            newestFirst: .random(using: &random), seed: UInt64(seed))
        var held: [Int: Int] = [:]
        for step in 0..<4_000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<6:
                let cost = Int.random(in: 1...40, using: &random)
                let standing = random.pick(Standing.allCases)
                held[step] = cost
                for id in space.add(step, cost: cost, by: Self.payer(.random(in: 0..<4_000, using: &random)), standing) {
                    check(held.removeValue(forKey: id))
                }
            case 6, 7:
                guard let id = held.keys.randomElement(using: &random) else { continue }
                held[id] = nil
                space.remove(id)
            default:
                let id = space.next()
                #expect((id == nil) == held.isEmpty)
                if let id { check(held.removeValue(forKey: id)) }
            }
            #expect(space.count == held.count && space.cost <= capacity)
            if step.isMultiple(of: 997) { #expect(space.cost == held.values.reduce(0, +)) }
        }
        while let id = space.next() { check(held.removeValue(forKey: id)) }
        #expect(held.isEmpty)
    }

    @Test func queueIsEmptyUntilSomethingIsPushedAndAfterItsTurn() {
        var queue = FairQueue<Int>(capacity: 1)
        #expect(queue.isEmpty)
        let displaced = queue.push(7, by: Self.payer(1), .stranger)
        #expect(displaced.isEmpty && !queue.isEmpty)
        let popped = queue.pop()
        #expect(popped == 7 && queue.isEmpty)
    }

    @Test func removedThingsTakeNoRoom() {
        var space = FairSpace<Int>(capacity: 10)
        // Behind one that stays.
        for number in 0..<1_000 {
            let displaced = space.add(number, cost: 1, by: Self.payer(1), .stranger)
            #expect(displaced.isEmpty)
            if number > 0 { space.remove(number) }
        }
        #expect(space.count == 1 && space.entryCount < 100)
    }

    @Test func additionsDoNotChangeTurns() {
        var space = FairSpace<Int>(capacity: 100)
        for (id, number) in [(0, 1), (1, 1), (2, 2), (3, 2)] { _ = space.add(id, cost: 1, by: Self.payer(number), .stranger) }
        let first = space.next()
        _ = space.add(4, cost: 1, by: Self.payer(3), .stranger)
        let second = space.next()
        #expect([first, second] == [0, 2])
    }

    @Test func floodOfStrangersDisplacesOnlyStrangers() {
        var space = FairSpace<Int>(capacity: 1_000)
        var strangers: Set<Int> = []
        for number in 0..<500 {
            let displaced = space.add(number, cost: 1, by: Self.payer(number), .known)
            #expect(displaced.isEmpty)
        }
        for number in 500..<20_000 {
            strangers.insert(number)
            let displaced = space.add(number, cost: 1, by: Self.payer(number), .stranger)
            #expect(strangers.isSuperset(of: displaced))
            strangers.subtract(displaced)
        }
        #expect(strangers.count == 500)
        // The known take back their guarantee, but not the guarantee of strangers.
        for number in 50_000..<60_000 { strangers.subtract(space.add(number, cost: 1, by: Self.payer(number), .known)) }
        #expect(strangers.count == 250)
    }

    @Test func fullestPayerMakesRoom() {
        var space = FairSpace<Int>(capacity: 100)
        for number in 0..<99 { _ = space.add(number, cost: 1, by: Self.payer(1), .stranger) }
        _ = space.add(99, cost: 1, by: Self.payer(2), .stranger)
        let result2 = space.add(100, cost: 1, by: Self.payer(3), .stranger)
        #expect(result2 == [0])
    }

    /// Compared with a search of all payers. They are few enough to be listed.
    @Test(arguments: 1...4) func alwaysTheFullestPayerMakesRoom(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var space = FairSpace<Int>(capacity: 2_000)
        var costs: [Int: Int] = [:]
        var owners: [Int: Int] = [:]
        func release(_ id: Int) {
            guard let (owner, cost) = owners.removeValue(forKey: id).map({ ($0 / 100, $0 % 100) }) else { return check(nil) }
            costs[owner, default: 0] -= cost
        }
        for id in 0..<6_000 {
            if Int.random(in: 0..<8, using: &random) == 0, let gone = owners.keys.min() {
                space.remove(gone)
                release(gone)
            }
            if Int.random(in: 0..<8, using: &random) == 0, let served = space.next() { release(served) }
            let (owner, cost) = (Int.random(in: 0..<300, using: &random), Int.random(in: 1...20, using: &random))
            costs[owner, default: 0] += cost
            owners[id] = owner * 100 + cost
            for displaced in space.add(id, cost: cost, by: Self.payer(owner), .stranger) {
                #expect(owners[displaced].map { costs[$0 / 100] == costs.values.max() } == true)
                release(displaced)
            }
        }
        #expect(space.cost == costs.values.reduce(0, +) && space.cost <= 2_000)
    }

    @Test func payersHaveEqualTurns() {
        var queue = FairQueue<Int>(capacity: 10_000, quantum: 10)
        for _ in 0..<1_000 { _ = queue.push(1, cost: 10, by: Self.payer(1), .stranger) }
        for _ in 0..<10 { _ = queue.push(2, cost: 10, by: Self.payer(2), .stranger) }
        let served = (0..<20).compactMap { _ in queue.pop() }
        #expect(served.count { $0 == 2 } == 10)
    }

    @Test func largeElementsTakeMoreTurns() {
        var queue = FairQueue<Int>(capacity: 100_000, quantum: 10)
        for _ in 0..<100 { _ = queue.push(1, cost: 100, by: Self.payer(1), .stranger) }
        for _ in 0..<1_000 { _ = queue.push(2, cost: 10, by: Self.payer(2), .stranger) }
        let served = (0..<220).compactMap { _ in queue.pop() }
        #expect((19...21).contains(served.count { $0 == 1 }))
    }

    @Test func knownPayersHaveTheirTurnsUnderAFlood() {
        var queue = FairQueue<Int>(capacity: 100_000)
        for number in 0..<20_000 { _ = queue.push(0, by: Self.payer(number), .stranger) }
        for _ in 0..<1_000 { _ = queue.pop() }
        for number in 0..<10 { _ = queue.push(1, by: Self.payer(-number - 1), .known) }
        let served = (0..<20).compactMap { _ in queue.pop() }
        #expect(served.count { $0 == 1 } == 10)
    }

    @Test func newPayersAreServedFirstIfAsked() {
        var queue = FairQueue<Int>(capacity: 100, newPayersFirst: true)
        for number in 0..<50 { _ = queue.push(number, by: Self.payer(number), .stranger) }
        let result3 = queue.pop()
        #expect(result3 == 49)
        let others = (0..<50).compactMap { _ in queue.pop() }
        #expect(others == (0..<49).reversed())
    }

    @Test func newestThingsAreServedFirstIfAskedAndOldestDisplaced() {
        var space = FairSpace<Int>(capacity: 7, newestFirst: true)
        for number in 0..<3 { _ = space.add(number, cost: 1, by: Self.payer(1), .stranger) }
        for number in 3..<6 { _ = space.add(number, cost: 1, by: Self.payer(2), .stranger) }
        // Each payer still has its turns.
        let first = (0..<2).compactMap { _ in space.next() }
        #expect(first == [5, 2])
        // Removed at the end, and displaced at the start.
        space.remove(4)
        for number in 6..<10 { _ = space.add(number, cost: 1, by: Self.payer(1), .stranger) }
        space.remove(9)
        let displaced = (10..<12).flatMap { space.add($0, cost: 1, by: Self.payer(1), .stranger) }
        #expect(displaced == [0])
        var served: [Int] = []
        while let next = space.next() { served.append(next) }
        #expect(served.filter { $0 != 3 } == [11, 10, 8, 7, 6, 1] && served.count == 7)
    }

    @Test func manyPayersAreHashedIntoClassesAndListedAgain() {
        var space = FairSpace<Int>(capacity: 10_000)
        for number in 0..<3_000 { _ = space.add(number, cost: 1, by: Self.payer(number), .stranger) }
        #expect(space.secret != nil)
        for number in 0..<2_900 { space.remove(number) }
        _ = space.add(5_000, cost: 1, by: Self.payer(1), .stranger)
        #expect(space.secret == nil && space.cost == 101)
    }

    @Test(arguments: [(511, true), (512, false)]) func payersAreListedAgainWhenTheyFillHalfTheClasses(left: Int, isListed: Bool) {
        var space = FairSpace<Int>(capacity: 10_000)
        for number in 0..<3_000 { _ = space.add(number, cost: 1, by: Self.payer(number), .stranger) }
        for number in left..<3_000 { space.remove(number) }
        _ = space.add(5_000, cost: 1, by: Self.payer(5_000), .stranger)
        #expect((space.secret == nil) == isListed)
    }
}
