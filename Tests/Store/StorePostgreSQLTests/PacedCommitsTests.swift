import Core
import Storage
import Synchronization
import TestSupport
import Testing

@testable import StorePostgreSQL

@Suite struct PacedCommitsTests {
    @Test func waitingCommandsShareATransactionAndAreCommittedWhenTheStoreIsClosed() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open(access: .shared)
        store.paceCommits(.seconds(3600))
        for number in 1...Int64(Pacing.burst) { try await store.commit(Counters.add(number)) }
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

    @Test func waitingCommandsContinueWhenTheOtherNodesLeave() async throws {
        let store = try StoreFixture().open(access: .shared)
        defer { try? store.close() }
        store.paceCommits(.seconds(3600))
        for number in 1...Int64(Pacing.burst) { try await store.commit(Counters.add(number)) }
        store.paceCommits(.zero)
        await #expect(throws: Never.self) { try await store.commit(Counters.add(100)) }
    }

    @Test func commitsAwaitedOneByOneAreNotPaced() async throws {
        let store = try StoreFixture().open(access: .shared)
        defer { try? store.close() }
        let began = ContinuousClock.now
        store.paceCommits(.seconds(3600))
        for number in 1...Int64(Pacing.burst) { try await store.commit(Counters.add(number)) }
        await store.settle()
        #expect(ContinuousClock.now - began < .seconds(3600))
    }
}
