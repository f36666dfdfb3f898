import Dispatch
import Storage
import Testing

extension StoreContract {
    static var reading: [StoreContract] {
        [
            StoreContract("Commands that are read together see one snapshot, whatever is committed meanwhile") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1)])
                let (reads, isCommitted) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                // Two steps of one command, and another command after it.
                let slow = Sample.numbers().then { before in
                    reads.signal()
                    isCommitted.wait()
                    return Sample.numbers().map { before + $0 }
                }
                async let found = store.onReader { store throws(StoreError) in try store.readEach([slow, Sample.numbers()]) }
                await wait(for: reads)
                try await store.commit(Sample.add(2))
                isCommitted.signal()
                #expect(try await found.map { try $0.get() } == [[1, 1], [1]])
                #expect(try store.read(Sample.numbers()) == [1, 2])
            },
            StoreContract("A command that changes rows is refused when it is read; the others are not") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 5)])
                let results = try store.readEach([Sample.size(of: 1), Sample.increment(1).map { $0 }, Sample.size(of: 1)])
                #expect(results.map { (try? $0.get()) == 5 } == [true, false, true])
                #expect(throws: StoreError.self) { try results[1].get() }
                #expect(try store.read(Sample.size(of: 1)) == 5)
                #expect(store.failure == nil)
            },
            StoreContract("A command that fails when it is read does not affect others") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 5)])
                let results = try store.readEach([Sample.size(of: 1), failing(), Sample.size(of: 1)])
                #expect(results.map { (try? $0.get()) == 5 } == [true, false, true])
            },
            StoreContract("A read sees what was committed before") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 0)])
                for size in 1...50 as ClosedRange<Int64> {
                    try await store.commit(Sample.increment(1))
                    #expect(try await store.fetch(Sample.size(of: 1)) == size)
                }
            },
            StoreContract("scan passes rows in order, and stops when the visitor returns false") { fixture in
                let store = try await fixture.open(with: (1...500).map { Sample.Item(number: $0) })
                let query = Query(Sample.item, [Sample.number], where: [.atLeast(Sample.number)], order: [.descending(Sample.number)])
                var found: [Int64] = []
                try store.scan(query(.integer(100))) { row in
                    found.append(try row.integer(0))
                    return true
                }
                #expect(found == (100...500).reversed())
                found = []
                try store.scan(query(.integer(100), limit: 50, offset: 10)) { row in
                    found.append(try row.integer(0))
                    return found.count < 3
                }
                #expect(found == [490, 489, 488])
            },
            StoreContract("scan ends with an error when the visitor throws; the store keeps working") { fixture in
                let store = try await fixture.open(with: (1...5).map { Sample.Item(number: $0) })
                let query = Query(Sample.item, [Sample.number])
                var count = 0
                #expect(throws: StoreError.self) {
                    try store.scan(query()) { _ in
                        count += 1
                        if count == 3 { throw Refused() }
                        return true
                    }
                }
                #expect(count == 3)
                #expect(try store.read(Sample.numbers()).count == 5)
            },
            StoreContract("A scan sees one snapshot") { fixture in
                let store = try await fixture.open(with: (1...300).map { Sample.Item(number: $0) })
                let query = Query(Sample.item, [Sample.number], order: [.ascending(Sample.number)])
                let (begins, isCommitted) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                async let count = store.onReader { store throws(StoreError) -> Int in
                    var count = 0
                    try store.scan(query()) { _ in
                        if count == 0 {
                            begins.signal()
                            isCommitted.wait()
                        }
                        count += 1
                        return true
                    }
                    return count
                }
                await wait(for: begins)
                try await store.commit(
                    .change([Sample.remove(.integer(300)), Sample.Item(number: 301).insert, Sample.Item(number: 302).insert]))
                isCommitted.signal()
                #expect(try await count == 300)
            },
            StoreContract("Several reads run at once, while commands are committed") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 0)])
                let sizes = try await withThrowingTaskGroup(of: Int64?.self) { group in
                    for _ in 0..<20 {
                        group.addTask { try await store.fetch(Sample.size(of: 1)) }
                        group.addTask { try await store.commit(Sample.increment(1)) }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(sizes.allSatisfy { (0...20).contains($0 ?? -1) })
                #expect(try store.read(Sample.size(of: 1)) == 20)
            },
            StoreContract("maintain reports no failure, and disturbs no commands") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 0)])
                await store.maintain()
                #expect(store.failure == nil)
                #expect(try await store.commit(Sample.increment(1)) == 0)
            },
        ]
    }
}
