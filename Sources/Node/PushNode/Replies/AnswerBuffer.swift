import Delivery
import NodeAPI
import DequeModule

/// Answers that wait for publication: some held until they are due, the others ready to be sealed and published. Time is an input.
///
///     add ──(due later)──▶ held ──────(due)──────────────▶ ready ──▶ taken
///      └──(due now)───────────────────────────────────────▲
///
/// Bounded in number and in bytes. Above the byte limit the largest answers are dropped first, so that a few large ones can't displace many
/// small ones.
struct AnswerBuffer: Sendable {
    private let capacity: Int
    private let byteCapacity: Int
    private var items: [Int64: Publisher.Item] = [:]
    private var sizes = IndexedHeap<Int64, Size>()
    private var held: TimerWheel<Int64>
    /// Ids of ready answers. Evicted ones may remain here, at most about as many as there are answers.
    private(set) var ready: Deque<Int64> = []
    private var nextID: Int64 = 0
    private(set) var byteCount = 0

    /// Orders answers by which is dropped first: the largest, and of those of the same size the newest.
    private struct Size: Comparable {
        let byteCount: Int
        let id: Int64

        static func < (a: Size, b: Size) -> Bool { (a.byteCount, a.id) > (b.byteCount, b.id) }
    }

    /// - Parameters:
    ///   - byteCapacity: maximum size of all answers together.
    ///   - horizon: maximum time for which an answer is held.
    init(capacity: Int, byteCapacity: Int, horizon: Duration) {
        self.capacity = capacity
        self.byteCapacity = byteCapacity
        held = TimerWheel(horizon: horizon)
    }

    var count: Int { items.count }
    var isEmpty: Bool { items.isEmpty }
    var hasHeld: Bool { !held.isEmpty }
    /// How late a held answer may be released.
    var resolution: Duration { held.width }

    /// Adds an answer.
    ///
    /// - Parameter due: when it may be published at the earliest; nil for at once.
    /// - Returns: the number of answers that were dropped for lack of space, possibly including this one.
    mutating func add(_ item: Publisher.Item, due: Duration?, at now: Duration) -> Int {
        guard items.count < capacity else { return 1 }
        let id = nextID
        nextID += 1
        items[id] = item
        sizes.insert(id, key: Size(byteCount: item.byteCount, id: id))
        byteCount += item.byteCount
        let lost = byteCount > byteCapacity ? evictLargest() : 0
        guard items[id] != nil else { return lost }
        if let due, due > now {
            items[id]?.heldSince = now
            held.add(id, due: due, at: now)
        } else {
            ready.append(id)
        }
        return lost
    }

    /// Makes held answers ready that are due.
    mutating func release(at now: Duration) {
        for id in held.take(at: now) {
            guard var item = items[id] else { continue }
            if let since = item.heldSince { item.heldFor = now - since }
            items[id] = item
            ready.append(id)
        }
    }

    mutating func take() -> Publisher.Item? {
        while let id = ready.popFirst() {
            guard let item = items.removeValue(forKey: id) else { continue }
            sizes.remove(id)
            byteCount -= item.byteCount
            return item
        }
        return nil
    }

    mutating func removeAll() {
        items = [:]
        sizes = IndexedHeap()
        ready = []
        byteCount = 0
    }

    private mutating func evictLargest() -> Int {
        var lost = 0
        while byteCount > byteCapacity, let id = sizes.popFirst(), let item = items.removeValue(forKey: id) {
            byteCount -= item.byteCount
            lost += 1
        }
        if ready.count > 2 * items.count + 64 { ready.removeAll { items[$0] == nil } }
        return lost
    }
}

extension Publisher.Item {
    fileprivate var byteCount: Int { answer.byteCount }
}
