/// Elements that are due later, in slots of a fixed width: adding one costs the same however many wait.
///
///     slots:   │ taken │ current+1 │ current+2 │ … │ current+n │     an element lies in the first slot that ends at or after its due time
///
/// Times count from any fixed start and must not go back. An element is taken at the end of its slot: up to one width late, never early.
struct TimerWheel<Element: Sendable>: Sendable {
    let width: Duration
    private var slots: [[Element]]
    /// Slots up to this one were taken.
    private var current = 0
    private(set) var count = 0

    /// - Parameter horizon: the longest time from adding an element until it is due; one that is due later is taken after that time.
    init(width: Duration = .milliseconds(10), horizon: Duration) {
        self.width = width
        slots = Array(repeating: [], count: Int(horizon / width) + 2)
    }

    var isEmpty: Bool { count == 0 }

    mutating func add(_ element: Element, due: Duration, at now: Duration) {
        // Nothing lies in slots that time has passed, so that an empty wheel may skip them.
        if isEmpty { current = max(current, Int(now / width)) }
        let slot = min(max(slot(of: due), current + 1), current + slots.count)
        slots[slot % slots.count].append(element)
        count += 1
    }

    /// Everything that is due, in the order of the slots.
    mutating func take(at now: Duration) -> [Element] {
        // A slot is over when its end has come.
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

    /// The slot that ends at or after a time.
    private func slot(of time: Duration) -> Int {
        Int((time / width).rounded(.up))
    }
}
