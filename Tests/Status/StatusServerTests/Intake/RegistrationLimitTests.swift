import Core
import NodeAPI
import RateLimits
import StatusProtocol
import StatusRules
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import StatusServer

@Suite struct RegistrationLimitTests {
    @Test func limitsOfHTTPAreNotCounted() {
        #expect(LimitCounters.status.counters(of: .httpRequests, .accountPlaces).isEmpty)
        #expect(LimitCounters.status.counters(of: .denied, .notificationsByTarget).count == 2)
        #expect(LimitCounters.status.notifications == LimitCounters.status.counters(of: .notificationsByTarget, .notifications))
        #expect(LimitCounters.status.notifications.count == 2)
    }

    @Test(arguments: [(1, true), (2, false)])
    func registrationIsDisplacedOnlyWhenThereIsNoRoom(limit: Int, isDisplaced: Bool) async throws {
        let fixture = try StatusStoreFixture()
        let server = PrivateKey.generate()
        var limits = Limits.none
        try limits.set("registration-count=\(limit)")
        let rules = RegistrationRules(identity: server)
        let handler = RegistrationHandler(
            rules: rules, registrations: fixture.registrations, limits: StatusLimits(limits), drain: Drain())
        let clients = (0..<2).map { _ in TestClient(of: server.publicKey) }
        var displaced: [KeyHash?] = []
        for (number, client) in clients.enumerated() {
            let envelope = try MetadataEnvelope(parsing: client.envelope(client.registration()), wakuSigner: client.identity.publicKey)
            let claim = try #require(rules.claim(in: envelope))
            let hash = MessageHash(bytes: [UInt8](repeating: UInt8(number), count: 32))
            let outcome = try await fixture.store.commit(handler.change(claim, hash, at: Timestamp(rawValue: 1)))
            #expect(outcome.error == nil)
            displaced.append(outcome.displaced)
        }
        #expect(displaced == [nil, isDisplaced ? clients[0].key.keyHash : nil])
    }
}
