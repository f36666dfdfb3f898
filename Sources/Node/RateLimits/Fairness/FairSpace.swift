import Core
import DequeModule
import HeapModule

/// Divides a bounded capacity by standing, then among the payers of each standing. Things are added with a cost, and stay until they are removed
/// or displaced.
///
///     add ──(capacity exceeded)──▶ the lowest standing above its guarantee ──▶ its fullest payer ──▶ that payer's oldest thing is displaced
///
/// So a flood of strangers displaces strangers only, and payers who hold much make room for payers who hold little. Payers are listed up to
/// ``classCount``; above that they are hashed into as many classes, with a secret that changes, so that nobody can find out which payers share a
/// class.
package struct FairSpace<ID: Hashable & Sendable>: Sendable {
    package static var classCount: Int { 1_024 }
    /// The number of additions after which the secret changes.
    private static var secretLifetime: Int { 65_536 }

    private struct Holding {
        let payer: Payer
        let standing: Standing
        var cost: Int
        var sequence: UInt64
        var place: UInt64
    }

    /// The things of one class of payers.
    struct Class {
        var cost = 0
        var count = 0
        /// Ordered by sequence; entries whose sequence is not that of their holding are stale.
        var order: Deque<(sequence: UInt64, id: ID)> = []
        var deficit = 0
        /// Identifies the class in ``Level/turns``: a class that emptied and filled again has a new one.
        let turn: UInt64
    }

    /// The cost of a class when it rose last, or later.
    struct Fullness: Comparable {
        let cost: Int
        let place: UInt64
        let turn: UInt64

        static func < (a: Fullness, b: Fullness) -> Bool { (a.cost, a.place, a.turn) < (b.cost, b.place, b.turn) }
    }

    struct Level {
        var cost = 0
        var classes: [UInt64: Class] = [:]
        /// Classes in the order of their turns; entries whose turn is not that of their class are stale.
        var turns: Deque<(place: UInt64, turn: UInt64)> = []
        /// The classes, each at least once with at least its cost; nil until something is displaced.
        var byFullness: Heap<Fullness>?
        /// The virtual time of the level: the sum of served costs, divided by its weight.
        var pass = 0.0
    }

    package let capacity: Int
    private let quantum: Int
    private let newPayersFirst: Bool
    private let newestFirst: Bool
    private var holdings: [ID: Holding] = [:]
    private var levels = [Level](repeating: Level(), count: Standing.allCases.count)
    private var payers: [Payer: Int] = [:]
    private var sequence: UInt64 = 0
    /// nil while payers are listed.
    private(set) var secret: UInt64?
    private var secretAge = 0
    private var secrets: SplitMix64
    private var virtualTime = 0.0

    /// - Parameters:
    ///   - capacity: the sum of costs that is held at most.
    ///   - quantum: the cost that a payer may take in one turn; of the order of a typical cost.
    ///   - newPayersFirst: whether payers that have just arrived have the next turn: under overload the youngest are served in time, instead of all of
    ///     them too late.
    ///   - newestFirst: the same for the things of a payer, too: its newest thing is served in place of its oldest.
    ///   - seed: of the secrets; random by default.
    package init(
        capacity: Int, quantum: Int = 1, newPayersFirst: Bool = false, newestFirst: Bool = false,
        seed: UInt64 = .random(in: .min ... .max)
    ) {
        self.capacity = max(1, capacity)
        self.quantum = max(1, quantum)
        self.newPayersFirst = newPayersFirst || newestFirst
        self.newestFirst = newestFirst
        secrets = SplitMix64(seed: seed)
    }

    // MARK: Reading

    package var count: Int { holdings.count }
    package var cost: Int { levels.reduce(0) { $0 + $1.cost } }
    /// The number of ordered entries, stale ones included: at most a constant and twice the number of things per class.
    var entryCount: Int { levels.flatMap(\.classes.values).reduce(0) { $0 + $1.order.count } }

    // MARK: Changes

    /// Adds a thing.
    ///
    /// - Returns: the displaced things, which may include this one.
    package mutating func add(_ id: ID, cost: Int, by payer: Payer, _ standing: Standing) -> [ID] {
        remove(id)
        let cost = max(1, cost)
        guard cost <= capacity else { return [id] }
        payers[payer, default: 0] += 1
        changeClassesIfNeeded()
        sequence += 1
        insert(id, Holding(payer: payer, standing: standing, cost: cost, sequence: sequence, place: place(of: payer)))
        return makeRoom()
    }

    package mutating func remove(_ id: ID) {
        guard let holding = holdings.removeValue(forKey: id) else { return }
        takeOut(holding, id)
        if let count = payers[holding.payer] { payers[holding.payer] = count > 1 ? count - 1 : nil }
    }

    // MARK: Turns

    /// Removes the thing whose turn it is: deficit round robin among the payers of a standing, and turns by weight among standings. A payer's
    /// things are served in order, or the newest first.
    package mutating func next() -> ID? {
        let candidates = levels.indices.filter { levels[$0].cost > 0 }
        guard let index = candidates.min(by: { (levels[$0].pass, -$0) < (levels[$1].pass, -$1) }) else { return nil }
        virtualTime = levels[index].pass
        while let (place, turn) = levels[index].turns.first {
            guard levels[index].classes[place]?.turn == turn, let (id, cost) = next(in: place, index) else {
                levels[index].turns.removeFirst()
                continue
            }
            let deficit = levels[index].classes[place]?.deficit ?? 0
            guard deficit >= cost else {
                levels[index].classes[place]?.deficit = deficit + quantum
                levels[index].turns.removeFirst()
                levels[index].turns.append((place, turn))
                continue
            }
            levels[index].classes[place]?.deficit = deficit - cost
            levels[index].pass += Double(cost) / Double(Standing.allCases[index].share)
            remove(id)
            return id
        }
        return nil
    }

    // MARK: -

    private mutating func insert(_ id: ID, _ holding: Holding) {
        holdings[id] = holding
        let index = holding.standing.rawValue
        // A standing that was idle has no credit for that time.
        if levels[index].cost == 0 { levels[index].pass = max(levels[index].pass, virtualTime) }
        levels[index].cost += holding.cost
        let isNew = levels[index].classes[holding.place] == nil
        levels[index].classes[holding.place, default: Class(turn: holding.sequence)].cost += holding.cost
        levels[index].classes[holding.place]?.count += 1
        levels[index].classes[holding.place]?.order.append((holding.sequence, id))
        noteFullness(of: holding.place, index)
        guard isNew else { return }
        levels[index].classes[holding.place]?.deficit = quantum
        let turn = (holding.place, holding.sequence)
        if newPayersFirst { levels[index].turns.prepend(turn) } else { levels[index].turns.append(turn) }
    }

    private mutating func takeOut(_ holding: Holding, _ id: ID) {
        let (index, place) = (holding.standing.rawValue, holding.place)
        levels[index].cost -= holding.cost
        guard let count = levels[index].classes[place]?.count else { return }
        guard count > 1 else {
            levels[index].classes[place] = nil
            return compactTurns(index)
        }
        levels[index].classes[place]?.cost -= holding.cost
        levels[index].classes[place]?.count = count - 1
        if levels[index].classes[place]?.order.first?.sequence == holding.sequence {
            levels[index].classes[place]?.order.removeFirst()
        } else if levels[index].classes[place]?.order.last?.sequence == holding.sequence {
            levels[index].classes[place]?.order.removeLast()
        } else if let entries = levels[index].classes[place]?.order.count, entries > 2 * count + 64 {
            levels[index].classes[place]?.order.removeAll { holdings[$0.id]?.sequence != $0.sequence }
        }
    }

    private mutating func compactTurns(_ index: Int) {
        guard levels[index].turns.count > 2 * levels[index].classes.count + 64 else { return }
        let classes = levels[index].classes
        levels[index].turns.removeAll { classes[$0.place]?.turn != $0.turn }
    }

    private mutating func next(in place: UInt64, _ index: Int) -> (id: ID, cost: Int)? {
        newestFirst ? newest(in: place, index) : oldest(in: place, index)
    }

    /// The newest thing of a class. Removes stale entries after it.
    private mutating func newest(in place: UInt64, _ index: Int) -> (id: ID, cost: Int)? {
        while let last = levels[index].classes[place]?.order.last {
            if let holding = holdings[last.id], holding.sequence == last.sequence { return (last.id, holding.cost) }
            levels[index].classes[place]?.order.removeLast()
        }
        return nil
    }

    /// The oldest thing of a class. Removes stale entries before it.
    private mutating func oldest(in place: UInt64, _ index: Int) -> (id: ID, cost: Int)? {
        while let first = levels[index].classes[place]?.order.first {
            if let holding = holdings[first.id], holding.sequence == first.sequence { return (first.id, holding.cost) }
            levels[index].classes[place]?.order.removeFirst()
        }
        return nil
    }

    private mutating func makeRoom() -> [ID] {
        var displaced: [ID] = []
        var total = cost
        while total > capacity {
            let above = Standing.allCases.first { levels[$0.rawValue].cost > $0.guarantee(in: capacity) }
            guard let index = above?.rawValue, let place = fullestClass(index), let (id, cost) = oldest(in: place, index) else { break }
            remove(id)
            total -= cost
            displaced.append(id)
        }
        return displaced
    }

    private mutating func fullestClass(_ index: Int) -> UInt64? {
        if levels[index].byFullness == nil {
            levels[index].byFullness = Heap(levels[index].classes.map { Fullness(cost: $1.cost, place: $0, turn: $1.turn) })
        }
        while let highest = levels[index].byFullness?.popMax() {
            guard let found = levels[index].classes[highest.place], found.turn == highest.turn else { continue }
            let isCurrent = found.cost == highest.cost
            levels[index].byFullness?.insert(isCurrent ? highest : Fullness(cost: found.cost, place: highest.place, turn: found.turn))
            if isCurrent { return highest.place }
        }
        return nil
    }

    private mutating func noteFullness(of place: UInt64, _ index: Int) {
        guard let count = levels[index].byFullness?.count, let (cost, turn) = levels[index].classes[place].map({ ($0.cost, $0.turn) })
        else {
            return
        }
        // It is made again, from the classes alone, when it has many outdated entries.
        guard count <= 4 * levels[index].classes.count + 64 else { return levels[index].byFullness = nil }
        levels[index].byFullness?.insert(Fullness(cost: cost, place: place, turn: turn))
    }

    // MARK: Classes

    private func place(of payer: Payer) -> UInt64 {
        guard let secret else { return payer.digest.low }
        var mixer = SplitMix64(seed: payer.digest.high ^ secret)
        return (mixer.next() ^ payer.digest.low) % UInt64(Self.classCount)
    }

    private mutating func changeClassesIfNeeded() {
        if secret == nil {
            guard payers.count > Self.classCount else { return }
        } else {
            secretAge += 1
            guard payers.count <= Self.classCount / 2 || secretAge >= Self.secretLifetime else { return }
        }
        secret = payers.count > Self.classCount / 2 ? secrets.next() : nil
        secretAge = 0
        let all = holdings.sorted { $0.value.sequence < $1.value.sequence }
        holdings = [:]
        for index in levels.indices {
            (levels[index].cost, levels[index].classes, levels[index].turns, levels[index].byFullness) = (0, [:], [], nil)
        }
        for (id, var holding) in all {
            holding.place = place(of: holding.payer)
            insert(id, holding)
        }
    }
}
