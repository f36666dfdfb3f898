/// A priority queue of unique ids, smallest key first. Inserting and removing an id takes logarithmic time.
package struct IndexedHeap<ID: Hashable & Sendable, Key: Comparable & Sendable>: Sendable {
    @usableFromInline struct Entry {
        @usableFromInline let key: Key
        @usableFromInline let id: ID

        @inlinable init(key: Key, id: ID) { (self.key, self.id) = (key, id) }
    }

    /// A binary heap: the children of `i` are at `2i + 1` and `2i + 2`, and have no smaller keys.
    @usableFromInline var entries: [Entry] = []
    @usableFromInline var places: [ID: Int] = [:]

    @inlinable package init() {}

    @inlinable package var count: Int { entries.count }
    @inlinable package var isEmpty: Bool { entries.isEmpty }
    @inlinable package var first: (key: Key, id: ID)? { entries.first.map { ($0.key, $0.id) } }

    /// - Precondition: the heap does not contain the id.
    @inlinable
    package mutating func insert(_ id: ID, key: Key) {
        precondition(places[id] == nil)
        entries.append(Entry(key: key, id: id))
        places[id] = entries.count - 1
        siftUp(from: entries.count - 1)
    }

    /// Removes an id. Returns whether the heap contained it.
    @inlinable
    @discardableResult
    package mutating func remove(_ id: ID) -> Bool {
        guard let place = places.removeValue(forKey: id) else { return false }
        let last = entries.removeLast()
        guard place < entries.count else { return true }
        put(last, at: place)
        siftUp(from: place)
        siftDown(from: place)
        return true
    }

    @inlinable
    package mutating func popFirst() -> ID? {
        guard let first else { return nil }
        remove(first.id)
        return first.id
    }

    @inlinable
    mutating func put(_ entry: Entry, at place: Int) {
        entries[place] = entry
        places[entry.id] = place
    }

    @inlinable
    mutating func siftUp(from start: Int) {
        var place = start
        let entry = entries[place]
        while place > 0, entry.key < entries[(place - 1) / 2].key {
            put(entries[(place - 1) / 2], at: place)
            place = (place - 1) / 2
        }
        if place != start { put(entry, at: place) }
    }

    @inlinable
    mutating func siftDown(from start: Int) {
        var place = start
        let entry = entries[place]
        while true {
            var child = 2 * place + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].key < entries[child].key { child += 1 }
            guard entries[child].key < entry.key else { break }
            put(entries[child], at: place)
            place = child
        }
        if place != start { put(entry, at: place) }
    }
}
