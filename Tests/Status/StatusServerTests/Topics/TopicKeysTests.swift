import Foundation
import NodeMetrics
import RateLimits
import StatusProtocol
import Storage
import StoreSQLite
import Synchronization
import Testing
import Waku
import WakuCrypto

@testable import StatusServer

@Suite struct TopicKeysTests {
    @Test func aKeyIsStoredOnlyWhileItsRegistrantIsRegistered() async throws {
        let fixture = try StatusStoreFixture()
        let (key, storage) = (StatusStoreFixture.key(), TopicKeyStorage(fixture.store.sealer))
        let topic = StatusTopics.query(key.keyHash)
        try await fixture.store.register(key)
        try await fixture.store.unregister(key, version: 2)
        try await fixture.store.commit(storage.keep(.random(), of: topic, ifRegistered: key.keyHash))
        #expect(try fixture.store.topicKey(topic) == nil)
        try await fixture.store.register(key, version: 3)
        try await fixture.store.commit(storage.keep(.random(), of: topic, ifRegistered: key.keyHash))
        #expect(try fixture.store.topicKey(topic) != nil)
    }

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
