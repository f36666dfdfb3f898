/// Elements that are due later, in slots of a fixed width. Adding an element takes constant time.
///
///     slots:   │ taken │ current+1 │ current+2 │ … │ current+n │     an element is in the first slot that ends at or after its due time
///
/// Times count from any fixed start and must not go back. An element is taken at the end of its slot: up to one width late, never early.
struct TimerWheel<Element: Sendable>: Sendable {
    let width: Duration
    private var slots: [[Element]]
    /// Slots up to this one were taken.
    private var current = 0
    private(set) var count = 0

    /// - Parameter horizon: maximum time from adding an element until it is due. An element that is due later is taken after that time.
    init(width: Duration = .milliseconds(10), horizon: Duration) {
        self.width = width
        slots = Array(repeating: [], count: Int(horizon / width) + 2)
    }

    var isEmpty: Bool { count == 0 }

    mutating func add(_ element: Element, due: Duration, at now: Duration) {
        // Passed slots are empty, so an empty wheel may skip them.
        if isEmpty { current = max(current, Int(now / width)) }
        let slot = min(max(slot(of: due), current + 1), current + slots.count)
        slots[slot % slots.count].append(element)
        count += 1
    }

    /// Takes all elements that are due, in the order of their slots.
    mutating func take(at now: Duration) -> [Element] {
        // Slots whose end has passed.
        let last = Int(now / width)
        var due: [Element] = []
        while current < last, !isEmpty {
            current += 1
            let place = current % slots.count
            count -= slots[place].count
            due += slots[place]
            slots[place] = []
        }
        current = max(current, last)
        return due
    }

    /// The first slot that ends at or after a time.
    private func slot(of time: Duration) -> Int {
        Int((time / width).rounded(.up))
    }
}
