import Primitives
import Storage
import Synchronization
import TestSupport
import Testing

@testable import StorePostgreSQL

@Suite struct CommitPacingTests {
    /// Begins a transaction whenever one may, with commands that always wait. Returns when they began.
    private func begin(_ pacing: inout CommitPacing, from start: Duration, to end: Duration) -> [Duration] {
        var (times, now) = ([Duration](), start)
        while now < end {
            let delay = pacing.delay(at: Instant(sinceEpoch: now))
            guard delay == .zero else {
                now += delay
                continue
            }
            times.append(now)
            pacing.begin(at: Instant(sinceEpoch: now))
            now += .milliseconds(1)
        }
        return times
    }

    @Test func withoutAnIntervalNothingWaits() {
        var pacing = CommitPacing()
        #expect(begin(&pacing, from: .seconds(1), to: .seconds(2)).count == 1000)
    }

    @Test func underLoadTransactionsBeginAnIntervalApart() {
        var pacing = CommitPacing(interval: .milliseconds(50))
        let times = begin(&pacing, from: .seconds(1), to: .seconds(3))
        #expect(times.prefix(CommitPacing.burst).allSatisfy { $0 < .milliseconds(1010) })
        let later = times.dropFirst(CommitPacing.burst)
        #expect(zip(later, later.dropFirst()).allSatisfy { $1 - $0 == .milliseconds(50) })
        #expect(abs(times.count - CommitPacing.burst - 40) <= 1)
    }

    @Test func whatComesAfterAQuietTimeDoesNotWait() {
        var pacing = CommitPacing(interval: .milliseconds(50))
        _ = begin(&pacing, from: .seconds(1), to: .seconds(2))
        #expect(pacing.delay(at: Instant(sinceEpoch: .milliseconds(1990))) == .milliseconds(10))
        #expect(pacing.delay(at: Instant(sinceEpoch: .seconds(2))) == .zero)
        // As many as before at once.
        let again = begin(&pacing, from: .seconds(4), to: .milliseconds(4020))
        #expect(again.count == CommitPacing.burst)
    }

    @Test func whatWaitsSharesATransactionAndIsCommittedWhenTheStoreIsClosed() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open(access: .shared)
        store.paceCommits(.seconds(3600))
        for number in 1...Int64(CommitPacing.burst) { try await store.commit(Counters.add(number)) }
        let completed = Mutex<Int>.Box()
        for number in 101...120 as ClosedRange<Int64> {
            store.submit([Counters.add(number)]) { _ in _ = completed.increment() }
        }
        #expect(completed.value == 0)
        try store.close()
        #expect(completed.value == 20)
        let connection = try PostgreSQLConnection.open(try fixture.address(), name: "test")
        let counts = Statement("SELECT count(*), count(DISTINCT xmin::text) FROM counter", isPrepared: false)
        #expect(try connection.run(counts).rows == [Row([.integer(28), .integer(9)])])
    }

    @Test func whatWaitedGoesOnWhenTheOtherNodesLeave() async throws {
        let store = try StoreFixture().open(access: .shared)
        defer { try? store.close() }
        store.paceCommits(.seconds(3600))
        for number in 1...Int64(CommitPacing.burst) { try await store.commit(Counters.add(number)) }
        store.paceCommits(.zero)
        try await store.commit(Counters.add(100))
    }

    @Test func whoeverWaitsForCommitsAloneIsNotPaced() async throws {
        let store = try StoreFixture().open(access: .shared)
        defer { try? store.close() }
        store.paceCommits(.seconds(3600))
        for number in 1...Int64(CommitPacing.burst) { try await store.commit(Counters.add(number)) }
        await store.settle()
    }
}
