import Storage
import Synchronization
import Testing

extension StoreContract {
    static var conflicts: [StoreContract] {
        [
            StoreContract("An insert that conflicts runs its command again, and no other") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1)])
                let decisions = Decisions()
                let results = await store.commitEach([
                    decisions.counted("before") { _ in [Sample.Item(number: 2).insert] },
                    decisions.counted("conflict") { [Sample.Item(number: $0 == 1 ? 1 : 3).insert] },
                    decisions.counted("after") { _ in [Sample.Item(number: 4).insert] },
                ])
                for result in results { try result.get() }
                #expect(decisions.counts == ["before": 1, "conflict": 2, "after": 1])
                #expect(try store.read(Sample.numbers()) == [1, 2, 3, 4])
            },
            StoreContract("An update whose row changed runs its command again, and no other") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 10), Sample.Item(number: 2, size: 0)])
                let decisions = Decisions()
                let results = await store.commitEach([
                    decisions.counted("before") { _ in [Sample.setSize(.integer(1), .integer(2), .integer(0))] },
                    // The first decision depends on a size that the row does not have.
                    decisions.counted("conflict") { [Sample.setSize(.integer(11), .integer(1), .integer($0 == 1 ? 9 : 10))] },
                    decisions.counted("after") { _ in [Sample.setSize(.integer(2), .integer(2), .integer(1))] },
                ])
                for result in results { try result.get() }
                #expect(decisions.counts == ["before": 1, "conflict": 2, "after": 1])
                #expect(try store.read(Sample.items()).map(\.size) == [11, 2])
            },
            StoreContract("A conflict of a later change undoes the command's earlier changes before it runs again") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 10)])
                let decisions = Decisions()
                let results = await store.commitEach([
                    decisions.counted("before") { _ in [Sample.Item(number: 2).insert] },
                    decisions.counted("conflict") { attempt in
                        [
                            Sample.Item(number: 100 + attempt).insert,
                            Sample.setSize(.integer(11), .integer(1), .integer(attempt == 1 ? 9 : 10)),
                        ]
                    },
                    decisions.counted("after") { _ in [Sample.Item(number: 3).insert] },
                ])
                for result in results { try result.get() }
                let last = try #require(decisions.counts["conflict"])
                #expect(last > 1)
                #expect(try store.read(Sample.numbers()) == [1, 2, 100 + Int64(last), 3])
                #expect(try store.read(Sample.size(of: 1)) == 11)
            },
            StoreContract("A command that keeps conflicting fails, and leaves no changes") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 10)])
                let (exists, stale) = (Sample.Item(number: 1).insert, Sample.setSize(.integer(0), .integer(1), .integer(9)))
                let results = await store.commitEach([
                    .change([Sample.Item(number: 2).insert]),
                    .change([exists]),
                    .change([Sample.Item(number: 3).insert, exists]),
                    .change([stale]),
                    .change([Sample.Item(number: 4).insert, stale]),
                    .change([Sample.Item(number: 5).insert, Sample.Item(number: 5).insert]),
                    .change([Sample.Item(number: 6).insert]),
                ])
                #expect(results.map { (try? $0.get()) != nil } == [true, false, false, false, false, false, true])
                for case .failure(let error) in results { #expect(error.code == .unavailable && !error.message.isEmpty) }
                #expect(try store.read(Sample.numbers()) == [1, 2, 6])
                #expect(try store.read(Sample.size(of: 1)) == 10)
                #expect(store.failure == nil)
            },
            StoreContract("A change that would make a second row with the same unique columns is a conflict") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1), Sample.Item(number: 2)])
                let renumber = Mutation(Sample.item, .updateAny([Sample.number], where: [.equal(Sample.number)]))
                let decisions = Decisions()
                try await store.commit(decisions.counted("update") { [renumber(.integer($0 == 1 ? 1 : 3), .integer(2))] })
                #expect(decisions.counts == ["update": 2])
                #expect(try store.read(Sample.numbers()) == [1, 3])
            },
            StoreContract("Unconditional changes of missing rows do not conflict") { fixture in
                let store = try fixture.open()
                let update = Mutation(Sample.item, .updateAny([Sample.size], where: [.equal(Sample.number)]))
                let decisions = Decisions()
                try await store.commit(decisions.counted("change") { _ in [update(.integer(1), .integer(1)), Sample.remove(.integer(1))] })
                #expect(decisions.counts == ["change": 1])
                #expect(try store.read(Sample.numbers()).isEmpty)
            },
            StoreContract("Two stores on one database do not lose each other's updates") { fixture in
                let stores = [try await fixture.open(with: [Sample.Item(number: 1, size: 0)]), try fixture.open()]
                let kept = await withTaskGroup(of: Int.self) { group in
                    for store in stores {
                        for _ in 0..<50 { group.addTask { (try? await store.commit(Sample.increment(1))) == nil ? 0 : 1 } }
                    }
                    return await group.reduce(0, +)
                }
                #expect(kept > 0)
                for store in stores { #expect(try store.read(Sample.size(of: 1)) == Int64(kept)) }
            },
        ]
    }
}

/// Counts how often commands were decided.
private final class Decisions: Sendable {
    private let state = Mutex<[String: Int]>([:])

    var counts: [String: Int] { state.withLock { $0 } }

    /// - Parameter changes: receives the number of the decision, from 1.
    func counted(_ name: String, _ changes: @escaping @Sendable (Int64) -> [Change]) -> StoreCommand<Void> {
        .read([]) { [self] _ in
            let number = state.withLock { counts in
                counts[name, default: 0] += 1
                return counts[name, default: 0]
            }
            return .change(changes(Int64(number)))
        }
    }
}
