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

@Suite("Grants of stored registrations")
struct StoredGrantTests {
    private let fixture: StatusStoreFixture
    private let server: PrivateKey
    private let client: TestClient

    init() throws {
        fixture = try StatusStoreFixture()
        server = .generate()
        client = TestClient(of: server.publicKey)
    }

    /// Registers by a message, with a memory that does not know the client.
    private func register(_ registration: PushNotificationRegistration) async throws -> PushNotificationRegistrationResponse.ErrorType? {
        let rules = RegistrationRules(identity: server)
        let handler = RegistrationHandler(
            rules: rules, registrations: fixture.registrations, limits: StatusLimits(.none), drain: Drain())
        let envelope = try MetadataEnvelope(parsing: client.envelope(registration), wakuSigner: client.identity.publicKey)
        let claim = try #require(rules.claim(in: envelope, isStored: { _ in true }))
        #expect(claim.leavesGrant)
        let hash = MessageHash(bytes: [UInt8](repeating: UInt8(registration.version), count: 32))
        return try await fixture.store.commit(handler.change(claim, hash, at: Timestamp(rawValue: 1))).error
    }

    /// An invalid grant shows whether a grant was proved again.
    private func merge(_ message: MessageMark?, list: [[UInt8]] = []) async throws {
        let stored = client.registration {
            $0.grant[0] ^= 1
            $0.blockedChatList = list
        }
        let record = RegistrationRecord(
            key: client.key, version: 1, changedAt: Timestamp(rawValue: 1), registration: stored.encoded(), message: message)
        #expect(try await fixture.store.commit(fixture.registrations.merge(record)))
    }

    @Test("The grant of a registration that a message stored is not proved again")
    func received() async throws {
        try await merge(MessageMark(rawValue: 0))
        #expect(try await register(client.registration(version: 2) { $0.grant[0] ^= 1 }) == nil)
        #expect(try await register(client.registration(version: 3) { $0.grant[1] ^= 1 }) == .malformedMessage)
        #expect(try await register(client.registration(version: 4)) == nil)
        #expect(try await register(client.registration(version: 5) { $0.grant[0] ^= 1 }) == .malformedMessage)
    }

    @Test("The grant of a registration with long lists is proved: that takes less time than reading them")
    func large() async throws {
        try await merge(MessageMark(rawValue: 0), list: Array(repeating: [7], count: 1_000))
        #expect(try await register(client.registration(version: 2) { $0.grant[0] ^= 1 }) == .malformedMessage)
        #expect(try await register(client.registration(version: 2)) == nil)
    }

    @Test("The grant of an imported registration is proved, as is that of one that was unregistered")
    func imported() async throws {
        try await merge(nil)
        #expect(try await register(client.registration(version: 2) { $0.grant[0] ^= 1 }) == .malformedMessage)
        #expect(try await register(client.registration(version: 2)) == nil)
        try await fixture.store.unregister(client.key, version: 3, at: Timestamp(rawValue: 2))
        #expect(try await register(client.registration(version: 4) { $0.grant[0] ^= 1 }) == .malformedMessage)
    }
}
