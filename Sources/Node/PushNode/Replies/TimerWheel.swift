/// Elements that are due later, in slots of a fixed width. Adding an element takes constant time.
///
///     slots:   │ taken │ current+1 │ current+2 │ … │ current+n │     an element is in the first slot that ends at or after its due time
///
/// Times count from any fixed start and must not go back. An element is taken at the end of its slot: up to one width late, never early.
struct TimerWheel<Element: Sendable>: Sendable {
    let width: Duration
    private var slots: [[Element]]
    /// Slots up to this one are empty.
    private var current = 0
    /// Elements whose slots have passed since the last ``take(at:)``.
    private var passed: [Element] = []
    private(set) var count = 0

    /// - Parameter horizon: maximum time from adding an element until it is due. An element that is due later is taken after that time.
    init(width: Duration = .milliseconds(10), horizon: Duration) {
        self.width = width
        slots = Array(repeating: [], count: Int(horizon / width) + 2)
    }

    var isEmpty: Bool { count == 0 }

    mutating func add(_ element: Element, due: Duration, at now: Duration) {
        // A place is that of one slot only, among those after the current one.
        advance(to: now)
        let slot = min(max(slot(of: due), current + 1), current + slots.count)
        slots[slot % slots.count].append(element)
        count += 1
    }

    /// Takes all elements that are due, in the order of their slots.
    mutating func take(at now: Duration) -> [Element] {
        advance(to: now)
        count -= passed.count
        defer { passed = [] }
        return passed
    }

    private mutating func advance(to now: Duration) {
        // Slots whose end has passed.
        let last = Int(now / width)
        while current < last, count > passed.count {
            current += 1
            let place = current % slots.count
            passed += slots[place]
            slots[place] = []
        }
        current = max(current, last)
    }

    /// The first slot that ends at or after a time.
    private func slot(of time: Duration) -> Int {
        Int((time / width).rounded(.up))
    }
}
