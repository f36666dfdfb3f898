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

/// The store decides on a command again if rows have changed since they were read, or if other commands of its transaction failed.
@Suite struct RepeatedDecisionTests {
    private let fixture: StatusStoreFixture
    private let server = PrivateKey.generate()
    private let now = Timestamp(rawValue: 1_700_000_000_000_000_000)

    init() throws {
        fixture = try StatusStoreFixture()
    }

    private func limits(_ texts: String...) throws -> StatusLimits {
        var limits = Limits.none
        for text in texts { try limits.set(text) }
        return StatusLimits(limits)
    }

    private func registering(_ client: TestClient, by handler: RegistrationHandler) throws -> StoreCommand<RegistrationOutcome> {
        let envelope = try MetadataEnvelope(parsing: client.envelope(client.registration()), wakuSigner: client.identity.publicKey)
        let claim = try #require(handler.rules.claim(in: envelope))
        return handler.change(claim, MessageHash(bytes: randomBytes(32)), at: now)
    }

    @Test func aRegistrationIsChargedAndCountedOnce() async throws {
        let limits = try limits("new-registrations=2/d", "registration-count=1")
        let handler = RegistrationHandler(
            rules: RegistrationRules(identity: server), registrations: fixture.registrations, limits: limits, drain: Drain())
        let (first, second) = (TestClient(of: server.publicKey), TestClient(of: server.publicKey))
        let stored = try await fixture.store.commit(registering(first, by: handler).decidedOnce(in: fixture.store))
        #expect(stored.error == nil && stored.displaced == nil)
        #expect(limits.limiter.exhausted(devices: 0) == nil && limits.limiter.isFull)
        // The second takes the place of the first.
        let displacing = try await fixture.store.commit(registering(second, by: handler).decidedOnce(in: fixture.store))
        #expect(displacing.error == nil && displacing.displaced == first.key.keyHash)
        #expect(limits.limiter.exhausted(devices: 0) == nil && limits.limiter.isFull)
        let third = try await fixture.store.commit(registering(TestClient(of: server.publicKey), by: handler))
        #expect(third.counter == .registrationLimited)
    }

    @Test func aNotificationIsChargedOnce() async throws {
        let handler = RequestHandler(
            rules: RequestRules(maximumAge: .seconds(600)), registrations: fixture.registrations,
            limits: try limits("notifications-by-target=1/d"))
        let client = TestClient(of: server.publicKey)
        let registration = client.registration()
        try await fixture.store.commit(
            fixture.registrations.store(registration, bytes: registration.encoded(), as: client.key, at: now))
        func requesting(_ number: UInt8) throws -> StoreCommand<RequestHandler.Outcome> {
            let request = PushNotificationRequest(requests: [client.notification()], messageID: [number])
            let envelope = try MetadataEnvelope(
                parsing: MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: .generate()).bytes,
                wakuSigner: server.publicKey)
            let pending = PendingRequest(
                request, MessageOrigin(envelope), hash: MessageHash(bytes: randomBytes(32)), pubsubTopic: .statusDefault, times: nil)
            return handler.change(request, pending, expires: now + .seconds(600), at: now)
        }
        #expect(try await fixture.store.commit(requesting(1).decidedOnce(in: fixture.store)).queued.count == 1)
        #expect(try await fixture.store.commit(requesting(2)).queued.isEmpty)
    }
}
