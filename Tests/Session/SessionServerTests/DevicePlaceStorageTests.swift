import Core
import SessionProtocol
import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import SessionServer

@Suite("Session: an account without a free place")
struct DevicePlaceStorageTests {
    private func delegated(_ account: SessionAccount, member: UInt8, at signedAt: Int64) -> SessionRequest {
        .subscribe(account.subscription(at: signedAt).delegated(.subkey(tag: [UInt8](repeating: member, count: 32))))
    }

    /// A group member with a right to read, or a storage server with its signature, fills the account.
    @Test("takes the owner's device, and gives each member a share", arguments: SecondReportTests.Engine.allCases)
    func delegatedKeys(engine: SecondReportTests.Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let (account, device) = (try SessionAccount.group(), SessionDevice())
        let start = Int64.now - 1_000
        for index in 0..<100 { try await fixture.apply([delegated(account, member: 1, at: start + 5 * Int64(index))]) }
        let rows = try fixture.rows(of: account).map(\.row)
        #expect(rows.count == 100)
        let own = try await fixture.apply([.subscribe(account.subscription(device))])
        #expect(own.answers == [.added] && own.replaced.count == 1)
        // The oldest delegated one makes room.
        #expect(own.monitoring.first == .remove(SubscriptionID(rawValue: rows[0])))
        #expect(own.monitoring.count == 2)
        let member = try await fixture.apply([delegated(account, member: 2, at: .now)])
        #expect(member.answers == [.added] && member.replaced.count == 1)
        #expect(try fixture.rows(of: account).count == 100)
        // The next of the first member replaces its own.
        try await fixture.apply((0..<5).map { delegated(account, member: 1, at: .now + 10 * $0) })
        #expect(try fixture.rows(of: account).count == 100)
        let renewed = try await fixture.apply([.subscribe(account.subscription(device, at: .now + 1))])
        #expect(renewed.answers == [.updated])
        try fixture.store.close()
    }

    /// A storage server repeats the owner's signature for its own devices: it does not cover the token.
    @Test("keeps and takes the owner's devices when a signature is repeated", arguments: SecondReportTests.Engine.allCases)
    func repeatedSignature(engine: SecondReportTests.Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let (account, first, second) = (try SessionAccount.sessionID(), SessionDevice(), SessionDevice())
        let signedAt = Int64.now - 60
        try await fixture.subscribe(account, first, at: signedAt)
        for _ in 0..<120 { try await fixture.apply([.subscribe(account.subscription(SessionDevice(), at: signedAt))]) }
        #expect(try fixture.rows(of: account).count == 100)
        #expect(try await fixture.apply([.subscribe(account.subscription(second))]).answers == [.added])
        #expect(try await fixture.apply([.subscribe(account.subscription(first))]).answers == [.updated])
        #expect(try fixture.rows(of: account).count == 100)
        try fixture.store.close()
    }

    @Test("keeps the devices that were delivered to", arguments: SecondReportTests.Engine.allCases)
    func delivered(engine: SecondReportTests.Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let account = try SessionAccount.sessionID()
        let start = Int64.now - 1_000
        for index in 0..<3 {
            try await fixture.apply([delegated(account, member: 1, at: start + 5 * Int64(index))], limit: 3)
        }
        let rows = try fixture.rows(of: account).map(\.row)
        let change = try #require(fixture.source.noteAccepted(rows[0], at: .now()))
        try await fixture.store.commit(.change([change]))
        // Noted once.
        #expect(fixture.source.noteAccepted(rows[0], at: .now()) == nil)
        let applied = try await fixture.apply([delegated(account, member: 1, at: .now)], limit: 3)
        #expect(applied.answers == [.added])
        #expect(applied.monitoring.first == .remove(SubscriptionID(rawValue: rows[1])))
        try fixture.store.close()
    }

    @Test func aBodyDoesNotReplaceItsOwnDevices() async throws {
        let fixture = try SessionStoreFixture()
        let account = try SessionAccount.group()
        let requests = (0..<4).map { delegated(account, member: 1, at: .now + 10 * $0) }
        let applied = try await fixture.apply(requests, limit: 3)
        #expect(applied.answers.prefix(3) == [.added, .added, .added])
        guard case .failed(let error) = applied.answers[3] else { throw UnexpectedValue() }
        #expect(error.code == .error)
        #expect(try fixture.rows(of: account).count == 3)
    }

    /// Each looks at all places of its account.
    @Test("has few devices replaced by one body", arguments: SecondReportTests.Engine.allCases)
    func fewAreReplaced(engine: SecondReportTests.Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let account = try SessionAccount.sessionID()
        let signedAt = Int64.now - 1_000
        try await fixture.apply((0..<30).map { _ in .subscribe(account.subscription(SessionDevice(), at: signedAt)) }, limit: 30)
        let new = (0..<20).map { SessionRequest.subscribe(account.subscription(SessionDevice(), at: signedAt + 10 + 10 * $0)) }
        let applied = try await fixture.apply(new, limit: 30)
        #expect(applied.answers.prefix(10).allSatisfy { $0 == .added } && applied.replaced.count == 10)
        #expect(applied.answers.dropFirst(10).allSatisfy { if case .failed(let error) = $0 { error.code == .error } else { false } })
        // The next body finds room.
        #expect(try await fixture.apply(Array(new.dropFirst(10)), limit: 30).replaced.count == 10)
        #expect(try fixture.rows(of: account).count == 30)
        try fixture.store.close()
    }

    @Test func renewalsDoNotReadTheOtherDevices() async throws {
        let fixture = try SessionStoreFixture()
        let (account, devices) = (try SessionAccount.sessionID(), [SessionDevice(), SessionDevice(), SessionDevice()])
        for device in devices { try await fixture.subscribe(account, device, at: .now - 60) }
        let renewals = devices.map { SessionRequest.subscribe(account.subscription($0)) }
        let whenFull = try fixture.steps(of: renewals, limit: 3)
        #expect(whenFull.readCount == (try fixture.steps(of: renewals, limit: 100).readCount) && whenFull.changeCount == 3)
        // Those of a new device are read.
        let new = [SessionRequest.subscribe(account.subscription(SessionDevice()))]
        #expect(try fixture.steps(of: new, limit: 3).rowCount == 1 + 3)
    }
}
