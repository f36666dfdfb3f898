import Core
import NodeAPI
import NodeMetrics
import RateLimits
import SessionProtocol
import Storage
import TestSupport
import Testing

@testable import SessionServer

@Suite("Session: expired subscriptions") struct SessionPruneTests {
    @Test func allAreRemovedHoweverMany() async throws {
        let fixture = try SessionNodeFixture()
        try await fixture.withNode { running in
            let service = try #require(running.service)
            let store = service.node.store
            let account = try SessionAccount.sessionID()
            let now = Int64.now
            let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: 1_000)
            let requests = (0..<501).map { _ in SessionRequest.subscribe(account.subscription(SessionDevice(), at: now)) }
            let subscriptions = Subscriptions(store.sealer)
            let applied = try await store.commit(subscriptions.apply(requests, rules, at: now) { _ in nil })
            #expect(applied.answers.allSatisfy { $0 == .added })
            let later = Timestamp(seconds: now + 15 * .day)
            await service.prune(Retention(cutoff: later, rowLimit: 1_000, now: later))
            #expect(try await store.commit(Subscriptions.expire(at: later.seconds, limit: 10)).isEmpty)
            #expect(service.node.counters.count(.registrationExpired) == 501)
        }
    }

    /// The status page's figures may be older.
    @Test func theLimitCountsWhatIsStored() async throws {
        let fixture = try SessionNodeFixture()
        try await fixture.withNode(configure: { $0.limits.registrationCount = 1 }) { running in
            let service = try #require(running.service)
            let store = service.node.store
            await service.recount()
            #expect(!service.limits.limiter.isFull)
            // As another node does.
            let request = SessionRequest.subscribe(try SessionAccount.sessionID().subscription(SessionDevice()))
            let rules = SubscriptionRules(availableServices: Set(PushService.allCases))
            _ = try await store.commit(Subscriptions(store.sealer).apply([request], rules, at: .now) { _ in nil })
            await service.recount()
            #expect(service.limits.limiter.isFull)
        }
    }

    @Test func pruningEndsNoMinuteOfTheReport() async throws {
        let fixture = try SessionNodeFixture()
        try await fixture.withNode { running in
            let service = try #require(running.service)
            for _ in 0..<700 { service.limits.refusedTurn() }
            await service.recount()
            let now = service.node.now()
            await service.prune(Retention(cutoff: now, rowLimit: 1, now: now))
            #expect(service.limitReport?.attack != nil)
        }
    }
}
