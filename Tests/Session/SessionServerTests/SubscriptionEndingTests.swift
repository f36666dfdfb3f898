import Core
import Delivery
import SessionProtocol
import Storage
import Synchronization
import TestSupport
import Testing

@testable import SessionServer

/// Subscriptions that one node ends while another node on the same database commits a renewal.
@Suite("Session: the end of a subscription", .timeLimit(.minutes(5)))
struct SubscriptionEndingTests {
    enum Ending: CaseIterable {
        case expiry, deadToken, unsubscription
    }

    /// Commits a command whose first decision is from before a change.
    private func commit<Outcome>(
        _ command: StoreCommand<Outcome>, in store: any Store, decidedBefore change: () async throws -> Void
    ) async throws -> Outcome {
        var decided = command
        while case .read(let reads, let next) = decided {
            decided = try next(try store.read(StoreCommand<[[Row]]>.read(reads) { .done($0) }))
        }
        try await change()
        let attempts = Mutex(0)
        return try await store.commit(
            .read([]) { [decided] _ in
                let attempt = attempts.withLock { attempts in
                    attempts += 1
                    return attempts
                }
                return attempt == 1 ? decided : command
            })
    }

    @Test("leaves a renewal that is committed after it was decided", arguments: Ending.allCases, SecondReportTests.Engine.allCases)
    func renewal(ending: Ending, engine: SecondReportTests.Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let (account, device, now) = (try SessionAccount.sessionID(), SessionDevice(), Int64.now)
        let former = now - 10
        try await fixture.subscribe(account, device, at: former)
        try await fixture.notify(message(for: account))
        let row = try #require(try fixture.rows(of: account).first).row
        func renew() async throws { try await fixture.subscribe(account, device, at: now) }
        switch ending {
        case .expiry:
            let expiry = Subscriptions.expire(at: former + 14 * .day, limit: 10)
            #expect(try await commit(expiry, in: fixture.store, decidedBefore: renew).isEmpty)
        case .deadToken:
            let end = fixture.source.endDevice(row, version: UInt64(bitPattern: former), at: .now())
            try await commit(end, in: fixture.store, decidedBefore: renew)
        case .unsubscription:
            let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: 100)
            let request = SessionRequest.unsubscribe(account.unsubscription(device, at: now - 5))
            let applied = try await commit(
                fixture.subscriptions.apply([request], rules, at: now) { _ in nil }, in: fixture.store, decidedBefore: renew)
            #expect(applied.monitoring.isEmpty && applied.answers != [.removed(true)])
        }
        #expect(try fixture.rows(of: account).map(\.row) == [row])
        #expect(try fixture.records(of: account).map(\.authority.signedAt) == [now])
        #expect(try fixture.waiting.count == 1)
        try fixture.store.close()
    }

    /// As when both expire the same subscriptions.
    @Test("succeeds if another node has ended the subscription meanwhile", arguments: SecondReportTests.Engine.allCases)
    func end(engine: SecondReportTests.Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let (account, now) = (try SessionAccount.sessionID(), Int64.now)
        for _ in 0..<10 { try await fixture.subscribe(account, SessionDevice(), at: now - 10) }
        func expiry() -> StoreCommand<[SubscriptionID]> { Subscriptions.expire(at: now + 14 * .day, limit: 100) }
        let expired = try await commit(expiry(), in: fixture.store) {
            let others = try await fixture.store.commit(expiry())
            #expect(others.count == 10)
        }
        #expect(expired.isEmpty)
        #expect(try fixture.rows(of: account).isEmpty)
        try fixture.store.close()
    }
}
