import DequeModule

/// A queue that serves payers in turn by the cost of their elements: deficit round robin.
///
/// Each turn adds ``quantum`` to the credit of a payer, and its first element leaves when the credit covers the element's cost. So each payer with
/// waiting elements gets the same share, however many elements it has, and a payer with cheap elements waits for few costly ones. A payer without
/// elements keeps no credit.
package struct DeficitTurns<Payer: Hashable & Sendable, Element: Sendable>: Sendable {
    private struct Line: Sendable {
        var elements: Deque<(element: Element, cost: Int)> = []
        var credit = 0
    }

    /// The credit of a turn, in the unit of the costs.
    private let quantum: Int
    /// The greatest cost that counts: an upper bound of the turns that an element waits for.
    private let costLimit: Int
    private var lines: [Payer: Line] = [:]
    /// Payers with waiting elements, in the order of their turns.
    private var turns: Deque<Payer> = []
    package private(set) var count = 0

    /// - Parameters:
    ///   - quantum: a typical cost.
    ///   - costLimit: higher costs count as this.
    package init(quantum: Int, costLimit: Int) {
        self.quantum = max(1, quantum)
        self.costLimit = max(1, costLimit)
    }

    package var isEmpty: Bool { turns.isEmpty }

    /// The number of a payer's waiting elements.
    package func count(of payer: Payer) -> Int { lines[payer]?.elements.count ?? 0 }

    package mutating func append(_ element: Element, cost: Int, of payer: Payer) {
        if lines[payer] == nil { turns.append(payer) }
        lines[payer, default: Line()].elements.append((element, min(max(cost, 1), costLimit)))
        count += 1
    }

    /// Removes the next element; nil if none waits.
    package mutating func popFirst() -> (payer: Payer, element: Element, cost: Int)? {
        while let payer = turns.first {
            guard let cost = lines[payer]?.elements.first?.cost, let credit = lines[payer]?.credit else {
                turns.removeFirst()
                continue
            }
            guard credit >= cost else {
                lines[payer]?.credit += quantum
                turns.removeFirst()
                turns.append(payer)
                continue
            }
            guard let first = lines[payer]?.elements.popFirst() else { continue }
            lines[payer]?.credit -= cost
            count -= 1
            if lines[payer]?.elements.isEmpty ?? true {
                lines[payer] = nil
                turns.removeFirst()
            }
            return (payer, first.element, cost)
        }
        return nil
    }
}
