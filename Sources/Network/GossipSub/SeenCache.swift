import Core

/// The ids of recently received messages, in a few generations of which the oldest is dropped as a whole.
struct SeenCache {
    private static let generationCount = 4

    private let period: Duration
    private let capacity: Int
    /// The newest is the last.
    private var generations: [Set<MessageID>] = [[]]
    private var newestSince: Instant?

    /// - Parameters:
    ///   - period: How long an id is remembered at least, unless the capacity is exceeded.
    ///   - capacity: The maximum number of ids in all generations.
    init(period: Duration, capacity: Int) {
        self.period = period
        self.capacity = max(capacity, Self.generationCount + 1)
    }

    var count: Int { generations.reduce(0) { $0 + $1.count } }

    func contains(_ id: MessageID) -> Bool { generations.contains { $0.contains(id) } }

    /// - Returns: false when the id was known.
    mutating func insert(_ id: MessageID, at now: Instant) -> Bool {
        advance(to: now)
        guard !contains(id) else { return false }
        generations[generations.count - 1].insert(id)
        return true
    }

    mutating func remove(_ id: MessageID) {
        for index in generations.indices { generations[index].remove(id) }
    }

    private mutating func advance(to now: Instant) {
        let since = newestSince ?? now
        newestSince = since
        let share = period / Self.generationCount
        guard now - since >= share || generations[generations.count - 1].count >= capacity / (Self.generationCount + 1) else { return }
        newestSince = now
        // One more generation than the period is divided into, so that each id is remembered for the whole period.
        generations.append([])
        if now - since >= period + share {
            generations = [[]]
        } else if generations.count > Self.generationCount + 1 {
            generations.removeFirst()
        }
    }
}
