import PostgreSQLModel
import Storage
import StoreContract
import StoreSQLite
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@Suite("The model of PostgreSQL that the simulation of the node uses", .timeLimit(.minutes(5)))
struct PostgreSQLModelTests {
    private typealias Fate = PostgreSQLModel.Fate

    /// Transactions that are refused, or whose replies are lost, up to three times in a row.
    private final class TroubledServer: Sendable {
        private let state = Mutex((generator: SeededGenerator(seed: 1), failures: 0))

        var server: PostgreSQLModel.Server {
            PostgreSQLModel.Server {
                self.state.withLock { state in
                    guard state.failures < 3 else {
                        state.failures = 0
                        return .committed
                    }
                    let fate = state.generator.pick(
                        [Fate.committed, .committed, .refused, .unanswered(isCommitted: true), .unanswered(isCommitted: false)])
                    state.failures = fate == .committed ? 0 : state.failures + 1
                    return fate
                }
            } isReachable: {
                true
            }
        }
    }

    @Test("StoreContract", arguments: StoreContract.all)
    func contract(requirement: StoreContract) async {
        await #expect(throws: Never.self) {
            try await requirement.run { folder, storageKey, parts in
                PostgreSQLModel(try SQLiteStore(folder: folder, storageKey: storageKey, parts: parts), TroubledServer().server)
            }
        }
    }

    private func store(in folder: TemporaryFolder, fates: [Fate], isReachable: Bool = true) throws -> PostgreSQLModel {
        let left = Mutex(fates[...])
        return PostgreSQLModel(
            try SQLiteStore(folder: folder.path, storageKey: .random(), parts: [Counters.part]),
            PostgreSQLModel.Server {
                left.withLock { $0.popFirst() } ?? .committed
            } isReachable: {
                isReachable
            })
    }

    @Test func serverThatCanNotBeReachedTwiceFailsCommands() async throws {
        let folder = try TemporaryFolder()
        let store = try store(in: folder, fates: [.unreachable, .unreachable])
        await #expect(throws: StoreError.self) { try await store.commit(.done(())) }
        #expect(store.failure != nil)
    }

    @Test func serverThatCanNotBeReachedOnceIsTriedAgain() async throws {
        let folder = try TemporaryFolder()
        let store = try store(in: folder, fates: [.unreachable])
        try await store.commit(.done(()))
        #expect(store.failure == nil)
    }

    @Test func unknownOutcomeFailsOnlyWhenTheNodeStops() async throws {
        let folder = try TemporaryFolder()
        let store = try store(in: folder, fates: [.unanswered(isCommitted: true)], isReachable: false)
        let outcome = Task { try await store.commit(.done(())) }
        store.stopWaiting()
        await #expect(throws: StoreError.self) { try await outcome.value }
    }
}
