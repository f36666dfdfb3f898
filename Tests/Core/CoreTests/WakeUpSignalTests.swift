import Core
import Synchronization
import TestSupport
import Testing

/// Items from producers, for a consumer.
private final class Work: Sendable {
    let queue = Mutex<[Int]>([])
    let handled = Mutex<Set<Int>>([])

    func handleAll() {
        let items = queue.withLock { queue in
            defer { queue = [] }
            return queue
        }
        handled.withLock { $0.formUnion(items) }
    }
}

@Suite(.timeLimit(.minutes(5))) struct WakeUpSignalTests {
    @Test func aSignalBeforeTheWaitIsKept() async {
        let signal = WakeUpSignal()
        signal.signal()
        var iterator = signal.makeAsyncIterator()
        #expect(await iterator.next() != nil)
    }

    @Test func signalsCoalesce() async {
        let signal = WakeUpSignal()
        for _ in 0..<100 { signal.signal() }
        signal.finish()
        var count = 0
        for await _ in signal { count += 1 }
        #expect(count == 1)
    }

    /// Every item is handled though most signals coalesce: the consumer empties the queue after each.
    @Test func noItemIsLostBetweenManyProducersAndAConsumer() async throws {
        let signal = WakeUpSignal()
        let work = Work()
        let consumer = Task {
            for await _ in signal { work.handleAll() }
        }
        await withDiscardingTaskGroup { group in
            for producer in 0..<4 {
                group.addTask {
                    for item in 0..<500 {
                        work.queue.withLock { $0.append(producer * 500 + item) }
                        signal.signal()
                    }
                }
            }
        }
        try await eventually { work.handled.withLock(\.count) == 2_000 }
        signal.finish()
        await consumer.value
        #expect(work.handled.withLock { $0 } == Set(0..<2_000))
    }

    @Test func finishEndsTheIterationForGood() async {
        let signal = WakeUpSignal()
        signal.finish()
        signal.signal()
        for await _ in signal { Issue.record("woken after finish") }
    }

    /// The cancelled one may have left something.
    @Test func aConsumerAfterACancelledOneIsWokenAtOnceAndByLaterSignals() async throws {
        let signal = WakeUpSignal()
        for item in 0..<2 {
            let work = Work()
            let consumer = Task {
                for await _ in signal { work.handleAll() }
            }
            work.queue.withLock { $0 = [item] }
            signal.signal()
            try await eventually { work.handled.withLock { $0 } == [item] }
            consumer.cancel()
            await consumer.value
        }
        var iterator = signal.makeAsyncIterator()
        #expect(await iterator.next() != nil)
        signal.signal()
        #expect(await iterator.next() != nil)
        signal.finish()
        #expect(await iterator.next() == nil)
        iterator = signal.makeAsyncIterator()
        #expect(await iterator.next() == nil, "woken after finish")
    }
}
