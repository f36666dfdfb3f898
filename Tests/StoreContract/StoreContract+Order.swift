import Dispatch
import Storage
import Synchronization
import Testing

extension StoreContract {
    static var order: [StoreContract] {
        [
            StoreContract("Commands take effect, and are completed, in the order in which they were submitted") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 0)])
                let found = Mutex<[Int64]>([])
                for _ in 0..<100 {
                    store.submit([Sample.increment(1), Sample.increment(1)]) { results in
                        for result in results { found.withLock { $0.append((try? result.get()) ?? -1) } }
                    }
                }
                await store.settle()
                #expect(found.withLock { $0 } == Array(0..<200))
            },
            StoreContract("A command sees the changes of earlier ones, also in the same batch") { fixture in
                let store = try fixture.open()
                let sees = await store.commitEach(
                    (1...20).map { number in
                        Sample.numbers().then { before in .change([Sample.Item(number: number).insert], before) }
                    })
                #expect(try sees.map { try $0.get() } == (0..<20).map { Array(1..<($0 + 1)) })
            },
            StoreContract("A failing command leaves no changes, and does not affect others") { fixture in
                let store = try fixture.open()
                let results = await store.commitEach(
                    (0..<9).map { number in
                        Sample.add(number).then { _ -> StoreCommand<Int64> in
                            if number == 5 { throw Refused() }
                            return .change([Sample.Item(number: 100 + number).insert], number)
                        }
                    })
                for (number, result) in results.enumerated() {
                    #expect((try? result.get()) == (number == 5 ? nil : Int64(number)))
                    if number == 5 { #expect(throws: StoreError.self) { try result.get() } }
                }
                let kept = (0..<9).filter { $0 != 5 }.flatMap { [$0, 100 + $0] }
                #expect(try store.read(Sample.numbers()) == kept.map(Int64.init))
            },
            StoreContract("A command enqueued without waiting has its place in the order") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1, size: 0)])
                for _ in 0..<10 { store.enqueue(Sample.increment(1).map { _ in }) }
                #expect(try await store.commit(Sample.increment(1)) == 10)
            },
            StoreContract("Commits of many concurrent tasks are all stored") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 0, size: 0)])
                let ids = try await withThrowingTaskGroup(of: [Int64].self) { group in
                    for number in 1...100 as ClosedRange<Int64> {
                        group.addTask {
                            try await store.commit(Sample.increment(0))
                            return [try await store.commit(Sample.add(number))]
                        }
                    }
                    return try await group.reduce(into: []) { $0 += $1 }
                }
                #expect(Set(ids).count == 100)
                #expect(Set(try store.read(Sample.numbers())) == Set(0...100))
                #expect(try store.read(Sample.size(of: 0)) == 100)
            },
            StoreContract("afterCommits runs after what was submitted before, and at once when nothing waits") { fixture in
                let store = try fixture.open()
                let events = Mutex<[String]>([])
                for number in 1...20 as ClosedRange<Int64> {
                    store.submit([Sample.add(number)]) { _ in events.withLock { $0.append("\(number) committed") } }
                    store.afterCommits { events.withLock { $0.append("after \(number)") } }
                }
                await store.settle()
                let positions = events.withLock { events in Dictionary(uniqueKeysWithValues: zip(events, events.indices)) }
                #expect(positions.count == 40)
                for number in 1...20 {
                    let (committed, after) = (positions["\(number) committed"] ?? .max, positions["after \(number)"] ?? .min)
                    #expect(committed < after)
                }
                let isDone = Mutex(false)
                store.afterCommits { isDone.withLock { $0 = true } }
                await store.settle()
                #expect(isDone.withLock { $0 })
            },
            StoreContract("settle waits for a command that takes long") { fixture in
                let store = try fixture.open()
                let (begins, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                store.enqueue(
                    .read([]) { _ in
                        begins.signal()
                        goesOn.wait()
                        return .change([Sample.Item(number: 1).insert])
                    })
                await wait(for: begins)
                let isSettled = Mutex(false)
                let settled = Task {
                    await store.settle()
                    isSettled.withLock { $0 = true }
                }
                for _ in 0..<10_000 { await Task.yield() }
                #expect(!isSettled.withLock { $0 })
                goesOn.signal()
                await settled.value
                #expect(try store.read(Sample.numbers()) == [1])
            },
            StoreContract("Committed rows are visible to another store, and after reopening") { fixture in
                let store = try fixture.open()
                let items = [Sample.Item(number: 1, name: "one", data: [1], size: 10), Sample.Item(number: 2)]
                try await store.commit(.change(items.map(\.insert)))
                let other = try fixture.open()
                #expect(try other.read(Sample.items()) == items)
                try other.close()
                try store.close()
                let reopened = try fixture.open()
                #expect(try reopened.read(Sample.items()) == items)
                #expect(reopened.failure == nil)
                #expect(reopened.byteCount > 0)
            },
            StoreContract("close finishes what was submitted") { fixture in
                let store = try fixture.open()
                for number in 1...50 as ClosedRange<Int64> { store.enqueue(Sample.add(number).map { _ in }) }
                try store.close()
                #expect(try fixture.open().read(Sample.numbers()) == Array(1...50))
            },
        ]
    }
}

/// Waits without blocking a thread of the cooperative pool.
func wait(for semaphore: DispatchSemaphore) async {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            semaphore.wait()
            continuation.resume()
        }
    }
}
