import Core
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct ExclusiveTurnTests {
    private final class Counts: Sendable {
        struct Values {
            var present = 0
            var most = 0
            var all = 0
            var waiting = 0
        }

        private let values = Mutex(Values())

        var all: Values { values.withLock { $0 } }

        func come() {
            values.withLock { values in
                values.present += 1
                values.all += 1
                values.most = max(values.most, values.present)
            }
        }

        func leave() { values.withLock { $0.present -= 1 } }
        func wait() { values.withLock { $0.waiting += 1 } }
    }

    private let turn = ExclusiveTurn()
    private let counts = Counts()

    @Test func onlyOneTaskAtATimeHasTheTurn() async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<100 {
                group.addTask {
                    await turn.run {
                        counts.come()
                        await Task.yield()
                        counts.leave()
                    }
                }
            }
        }
        #expect(counts.all.present == 0 && counts.all.most == 1 && counts.all.all == 100)
    }

    @Test func theNextTaskRunsAfterACancelledOneAndACancelledOneThatWaitedDoesNot() async throws {
        let first = Task {
            await turn.run {
                counts.come()
                for await _ in WakeUpSignal() {}
            }
        }
        try await eventually { counts.all.all == 1 }
        let cancelled = Task {
            await turn.run {
                counts.come()
            } whenTaken: {
                counts.wait()
            }
        }
        try await eventually { counts.all.waiting == 1 }
        cancelled.cancel()
        await cancelled.value
        let second = Task {
            await turn.run {
                counts.come()
            } whenTaken: {
                counts.wait()
            }
        }
        try await eventually { counts.all.waiting == 2 }
        first.cancel()
        await second.value
        #expect(counts.all.all == 2)
    }
}
