import Foundation
import NodeMetrics
import RateLimits
import StatusProtocol
import Synchronization
import Testing
import Waku
import WakuCrypto

@testable import StatusServer

@Suite struct TopicKeysTests {
    /// More derivations than can run at once, and room for one that waits.
    @Test func displacedDerivationsAreReportedAndAnswered() async throws {
        let fixture = try StatusStoreFixture()
        let registrants = (0..<ProcessInfo.processInfo.activeProcessorCount + 10).map { _ in StatusStoreFixture.key() }
        for registrant in registrants { try await fixture.store.register(registrant) }
        let displaced = Mutex(0)
        let keys = TopicKeys(
            store: fixture.store, counters: Counters([.queryTopics]), charge: { _ in .unattributed },
            displaced: { _ in displaced.withLock { $0 += 1 } }, waitingLimit: 1)
        let lost = try await withThrowingTaskGroup(of: Bool.self) { group in
            for registrant in registrants {
                group.addTask { try await keys.keys(QueryTopics(of: registrant.keyHash).deployed) == nil }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(lost > 0 && displaced.withLock(\.self) == lost)
    }
}
