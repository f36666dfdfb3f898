import DequeModule

/// Answers on their way to the network: some held until they are due, the others ready to be sealed and published. A value: time comes in.
///
///     add ──(due later)──▶ held ──(its time has come)──▶ ready ──▶ taken
///      └──(due now)───────────────────────────────────────▲
///
/// Bounded in number and in bytes. When the bytes run short, the largest answers go first: a few large ones must not cost many small ones.
struct AnswerBuffer: Sendable {
    private let capacity: Int
    private let byteCapacity: Int
    private var items: [UInt64: Publisher.Item] = [:]
    private var held: TimerWheel<UInt64>
    /// Those that had to go are still named here.
    private var ready: Deque<UInt64> = []
    private var nextID: UInt64 = 0
    private(set) var byteCount = 0

    /// - Parameter horizon: the longest time for which an answer is held.
    init(capacity: Int, byteCapacity: Int, horizon: Duration) {
        self.capacity = capacity
        self.byteCapacity = byteCapacity
        held = TimerWheel(horizon: horizon)
    }

    var count: Int { items.count }
    var isEmpty: Bool { items.isEmpty }
    var hasHeld: Bool { !held.isEmpty }
    /// How late an answer may leave that was held.
    var resolution: Duration { held.width }

    /// - Parameter due: when it may leave at the earliest; nil: at once.
    /// - Returns: How many answers are lost for want of room, this one perhaps among them.
    mutating func add(_ item: Publisher.Item, due: Duration?, at now: Duration) -> Int {
        guard items.count < capacity else { return 1 }
        let id = nextID
        nextID += 1
        items[id] = item
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

    /// Answers whose time has come become ready.
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
            byteCount -= item.byteCount
            return item
        }
        return nil
    }

    mutating func removeAll() {
        items = [:]
        ready = []
        byteCount = 0
    }

    /// Of answers of the same size the newest goes.
    private mutating func evictLargest() -> Int {
        var lost = 0
        while byteCount > byteCapacity,
            let (id, item) = items.max(by: { ($0.value.byteCount, $0.key) < ($1.value.byteCount, $1.key) })
        {
            items[id] = nil
            byteCount -= item.byteCount
            lost += 1
        }
        return lost
    }
}

extension Publisher.Item {
    fileprivate var byteCount: Int { answer.byteCount }
}
