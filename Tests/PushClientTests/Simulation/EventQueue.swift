/// Events by time; those of one instant in the order in which they were added.
struct EventQueue<Event> {
    /// Small, because entries are moved often.
    private struct Entry {
        let time: Duration
        let number: Int

        func isBefore(_ other: Entry) -> Bool { time != other.time ? time < other.time : number < other.number }
    }

    /// A binary heap.
    private var entries: [Entry] = []
    /// By number.
    private var events: [Event?] = []

    mutating func add(_ event: Event, at time: Duration) {
        entries.append(Entry(time: time, number: events.count))
        events.append(event)
        var index = entries.count - 1
        while index > 0, entries[index].isBefore(entries[(index - 1) / 2]) {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func next() -> (time: Duration, event: Event)? {
        guard let first = entries.first else { return nil }
        let last = entries.removeLast()
        if !entries.isEmpty {
            entries[0] = last
            sink()
        }
        defer { events[first.number] = nil }
        return events[first.number].map { (first.time, $0) }
    }

    private mutating func sink() {
        var index = 0
        while true {
            var least = index
            let left = 2 * index + 1
            if left < entries.count, entries[left].isBefore(entries[least]) { least = left }
            if left + 1 < entries.count, entries[left + 1].isBefore(entries[least]) { least = left + 1 }
            guard least != index else { return }
            entries.swapAt(index, least)
            index = least
        }
    }
}
