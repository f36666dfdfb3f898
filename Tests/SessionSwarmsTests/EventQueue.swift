import Primitives

/// Events of a simulation by time; those of the same time in the order in which they were added.
struct EventQueue<Event> {
    private var heap: [(at: Instant, number: Int, event: Event)] = []
    private var added = 0

    var next: Instant? { heap.first?.at }

    mutating func add(_ event: Event, at time: Instant) {
        heap.append((time, added, event))
        added += 1
        var place = heap.count - 1
        while place > 0, isBefore(place, (place - 1) / 2) {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func pop() -> (at: Instant, event: Event)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            var place = 0
            while true {
                var least = place
                for child in [2 * place + 1, 2 * place + 2] where child < heap.count && isBefore(child, least) { least = child }
                guard least != place else { break }
                heap.swapAt(place, least)
                place = least
            }
        }
        return (first.at, first.event)
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        (heap[left].at, heap[left].number) < (heap[right].at, heap[right].number)
    }
}
