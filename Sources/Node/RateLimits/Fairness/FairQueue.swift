/// A bounded queue in which standings and payers have their shares of the places and of the turns: see ``FairSpace``.
package struct FairQueue<Element: Sendable>: Sendable {
    private var space: FairSpace<UInt64>
    private var elements: [UInt64: Element] = [:]
    private var added: UInt64 = 0

    /// See ``FairSpace/init(capacity:shares:displacement:quantum:newPayersFirst:seed:)``.
    package init(
        capacity: Int, shares: StandingShares = .standard, displacement: FairSpace<UInt64>.Displacement = .fullestPayer, quantum: Int = 1,
        newPayersFirst: Bool = false, seed: UInt64 = .random(in: .min ... .max)
    ) {
        space = FairSpace(
            capacity: capacity, shares: shares, displacement: displacement, quantum: quantum, newPayersFirst: newPayersFirst, seed: seed)
    }

    package var count: Int { space.count }
    package var isEmpty: Bool { space.count == 0 }
    /// The sum of the costs of all elements.
    package var cost: Int { space.cost }
    package func cost(of standing: Standing) -> Int { space.cost(of: standing) }
    package func costs(limit: Int) -> [(payer: Payer, cost: Int)] { space.costs(limit: limit) }

    /// Adds an element.
    ///
    /// - Returns: the displaced elements, which may include this one.
    package mutating func push(_ element: Element, cost: Int = 1, by payer: Payer, _ standing: Standing) -> [Element] {
        added += 1
        elements[added] = element
        return space.add(added, cost: cost, by: payer, standing).compactMap { elements.removeValue(forKey: $0) }
    }

    /// Removes the element whose turn it is.
    package mutating func pop() -> Element? {
        space.next().flatMap { elements.removeValue(forKey: $0) }
    }

    /// Removes elements, such as those that are too old to be of use. Reads all of them.
    package mutating func removeAll(where isRemoved: (Element) -> Bool) -> [Element] {
        elements.filter { isRemoved($0.value) }.sorted { $0.key < $1.key }.map { id, element in
            space.remove(id)
            elements[id] = nil
            return element
        }
    }
}
