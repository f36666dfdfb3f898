import Core
import Storage
import Testing

extension StoreContract {
    private static let rows = TimedRows(Sample.item, by: Sample.size)
    private static let now: Int64 = 1_700_000_000_000_000_000
    private static let day: Int64 = 24 * 3_600_000_000_000

    private static func prune(
        _ store: any Store, before cutoff: Int64, at now: Int64 = now, keeping limit: Int = .max, since fresh: Int64 = .max
    ) async throws {
        try await store.prune(
            rows, before: Timestamp(rawValue: cutoff), at: Timestamp(rawValue: now), keeping: limit, since: Timestamp(rawValue: fresh))
    }

    private static func items(_ times: [Int64]) -> [Sample.Item] {
        times.enumerated().map { Sample.Item(number: Int64($0), size: $1) }
    }

    private static func times(in store: any Store) throws -> [Int64?] { try store.read(Sample.items()).map(\.size) }

    static var pruning: [StoreContract] {
        [
            StoreContract("Rows are pruned by time and by count, the oldest first; a clock that was set back leaves some") { fixture in
                let times: [Int64] = [10, 20, 30, 15, 40, 50]
                let store = try await fixture.open(with: items(times))
                try await prune(store, before: 5, keeping: 100)
                #expect(try Self.times(in: store) == times)
                try await prune(store, before: 25, keeping: 100)
                #expect(try Self.times(in: store) == [30, 15, 40, 50])
                // Rows since a time are kept, however many.
                try await prune(store, before: 25, keeping: 2, since: 30)
                #expect(try Self.times(in: store) == [30, 15, 40, 50])
                try await prune(store, before: 25, keeping: 1, since: 40)
                #expect(try Self.times(in: store) == [40, 50])
                try await prune(store, before: 0)
                #expect(try Self.times(in: store) == [40, 50])
                try await prune(store, before: 0, keeping: 1)
                #expect(try Self.times(in: store) == [50])
                try await prune(store, before: .max)
                #expect(try Self.times(in: store) == [])
                try await prune(store, before: .max)
                // A damaged row can have any id.
                let upsert = Mutation(Sample.item, .upsert([.id, Sample.number, Sample.size]))
                for id in [Int64.max, .min] {
                    try await store.commit(.change([upsert(.integer(id), .integer(id), .integer(1))]))
                    try await prune(store, before: 0, keeping: 1)
                    #expect(try Self.times(in: store) == [1])
                    try await prune(store, before: 2)
                    #expect(try Self.times(in: store) == [])
                }
            },
            StoreContract("Rows added while a clock was ahead keep no older rows, and go with those added after them") { fixture in
                let (old, ahead) = (now - 2 * day, now + 30 * day)
                let store = try await fixture.open(with: items([old, ahead, old + 1, now - 3, ahead + 1, now - 2, ahead + 2]))
                try await prune(store, before: now - day)
                #expect(try Self.times(in: store) == [now - 3, ahead + 1, now - 2, ahead + 2])
                try await prune(store, before: now, at: now + day - 1)
                #expect(try Self.times(in: store) == [ahead + 2])
                // When it was added is not known.
                try await prune(store, before: now + 2 * day, at: now + 3 * day)
                #expect(try Self.times(in: store) == [ahead + 2])
                try await prune(store, before: ahead + 3, at: ahead + day)
                #expect(try Self.times(in: store) == [])
            },
            StoreContract("Rows added while a clock was ahead are pruned by count, however fresh") { fixture in
                let ahead = now + day / 2
                let store = try await fixture.open(with: items([ahead, ahead + 1, now - 4, now - 3, now - 2]))
                try await prune(store, before: now - day, keeping: 4, since: now - 10)
                #expect(try Self.times(in: store) == [ahead + 1, now - 4, now - 3, now - 2])
                try await prune(store, before: now - day, keeping: 1, since: now - 3)
                #expect(try Self.times(in: store) == [now - 3, now - 2])
            },
            StoreContract("Many rows are deleted in several commits, until the task is cancelled") { fixture in
                let store = WatchedStore(try fixture.open())
                func fill() async throws {
                    try await store.commit(.change(items(Array(1...4_500)).map(\.insert)))
                    _ = store.takeCounts()
                }
                try await fill()
                try await prune(store, before: 4_499)
                #expect(store.takeCounts() == [2_500, 500, 2])
                try await prune(store, before: .max)
                #expect(store.takeCounts() == [0])
                let expired = ExpiredRows(Sample.item, by: Sample.size)
                try await fill()
                try await store.commitInChunks(atMost: 3_000) { expired.remove(before: 4_000, limit: $0) }
                #expect(store.takeCounts() == [2_500, 1_500])
                try await store.commitInChunks { expired.remove(before: 4_000, limit: $0) }
                #expect(try store.takeCounts() == [501] && Self.times(in: store) == (4_000...4_500).map { $0 })
                try await store.commitInChunks(atMost: -1) { expired.remove(before: .max, limit: $0) }
                #expect(store.takeCounts() == [])
                let cancelled = Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    try await prune(store, before: .max)
                    try await store.commitInChunks { expired.remove(before: .max, limit: $0) }
                }
                try await cancelled.value
                #expect(store.takeCounts() == [])
            },
        ]
    }
}
