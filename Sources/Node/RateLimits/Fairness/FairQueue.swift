/// A bounded queue in which standings and payers have their shares of the places and of the turns: see ``FairSpace``.
package struct FairQueue<Element: Sendable>: Sendable {
    private var space: FairSpace<UInt64>
    private var elements: [UInt64: Element] = [:]
    private var added: UInt64 = 0

    /// See ``FairSpace/init(capacity:quantum:newPayersFirst:newestFirst:seed:)``.
    package init(capacity: Int, quantum: Int = 1, newPayersFirst: Bool = false, seed: UInt64 = .random(in: .min ... .max)) {
        space = FairSpace(capacity: capacity, quantum: quantum, newPayersFirst: newPayersFirst, seed: seed)
    }

    package var isEmpty: Bool { space.count == 0 }

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
}
