import Core
import NodeAPI
import RateLimits

/// Answers that wait for publication: some held until they are due, the others ready to be sealed and published. Time is an input.
///
///     add ──(due later)──▶ held ──────(due)──────────────▶ ready ──▶ taken
///      └──(due now)───────────────────────────────────────▲
///
/// Bounded in number and in bytes. Places and turns are divided by standing and payer: see ``RateLimits/FairSpace``. The newest answers are taken
/// first: when there are more than a relay publishes, some arrive in time, instead of all of them too late.
struct AnswerBuffer: Sendable {
    /// An answer of more bytes takes a turn for each time this size. Lists of ordinary length take one, like small answers: publishing takes most
    /// of the time.
    private static let turnByteCount = 256 << 10

    private let leastByteCount: Int
    private var items: [Int64: Publisher.Item] = [:]
    /// Keyed by the time from which they may be published.
    private var held = IndexedHeap<Int64, Duration>()
    /// All answers, by size.
    private var places: FairSpace<Int64>
    /// The ready answers, by turns.
    private var ready = FairSpace<Int64>(capacity: .max, newestFirst: true)
    private var nextID: Int64 = 0

    /// - Parameters:
    ///   - capacity: maximum number of answers.
    ///   - byteCapacity: maximum size of all answers together.
    init(capacity: Int, byteCapacity: Int) {
        // Smaller answers count as this size, so that there is one limit.
        leastByteCount = (byteCapacity + capacity - 1) / capacity
        places = FairSpace(capacity: byteCapacity)
    }

    var count: Int { items.count }
    var isEmpty: Bool { items.isEmpty }
    var hasHeld: Bool { !held.isEmpty }

    /// Adds an answer.
    ///
    /// - Parameter due: when it may be published at the earliest; nil for at once.
    /// - Returns: the number of answers that were dropped for lack of space, possibly including this one.
    mutating func add(_ item: Publisher.Item, due: Duration?, at now: Duration) -> Int {
        let (id, answer) = (nextID, item.answer)
        nextID += 1
        items[id] = item
        let dropped = places.add(id, cost: max(answer.byteCount, leastByteCount), by: answer.charge.payer, answer.charge.standing)
        for id in dropped {
            items[id] = nil
            held.remove(id)
            ready.remove(id)
        }
        guard items[id] != nil else { return dropped.count }
        if let due, due > now {
            items[id]?.heldSince = now
            held.insert(id, key: due)
        } else {
            makeReady(id, answer)
        }
        return dropped.count
    }

    /// Makes held answers ready that are due.
    mutating func release(at now: Duration) {
        while let (due, id) = held.first, due <= now {
            held.remove(id)
            guard var item = items[id] else { continue }
            if let since = item.heldSince { item.heldFor = now - since }
            items[id] = item
            makeReady(id, item.answer)
        }
    }

    private mutating func makeReady(_ id: Int64, _ answer: Reply) {
        _ = ready.add(id, cost: 1 + answer.byteCount / Self.turnByteCount, by: answer.charge.payer, answer.charge.standing)
    }

    mutating func take() -> Publisher.Item? {
        guard let id = ready.next() else { return nil }
        places.remove(id)
        return items.removeValue(forKey: id)
    }

    mutating func removeAll() {
        for id in items.keys {
            places.remove(id)
            ready.remove(id)
        }
        held = IndexedHeap()
        items = [:]
    }
}
