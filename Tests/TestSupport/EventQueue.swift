import HeapModule

/// The events of a simulation, ordered by time, then by insertion.
package struct EventQueue<Time: Comparable, Event> {
    private struct Entry: Comparable {
        let time: Time
        let number: Int
        let event: Event

        static func == (left: Entry, right: Entry) -> Bool { left.number == right.number }
        static func < (left: Entry, right: Entry) -> Bool {
            left.time == right.time ? left.number < right.number : left.time < right.time
        }
    }

    private var heap = Heap<Entry>()
    private var added = 0

    package init() {}

    /// The time of the next event.
    package var next: Time? { heap.min?.time }

    package mutating func add(_ event: Event, at time: Time) {
        heap.insert(Entry(time: time, number: added, event: event))
        added += 1
    }

    package mutating func pop() -> (at: Time, event: Event)? {
        heap.popMin().map { ($0.time, $0.event) }
    }
}
