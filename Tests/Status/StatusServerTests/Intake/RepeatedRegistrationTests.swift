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

/// With `--idempotent-registrations`.
@Suite struct RepeatedRegistrationTests {
    private let fixture: StatusStoreFixture
    private let handler: RegistrationHandler
    private let rules: RegistrationRules
    private let client: TestClient

    init() throws {
        fixture = try StatusStoreFixture()
        let server = PrivateKey.generate()
        client = TestClient(of: server.publicKey)
        rules = RegistrationRules(identity: server, isIdempotent: true)
        handler = RegistrationHandler(rules: rules, registrations: fixture.registrations, limits: StatusLimits(.none), drain: Drain())
    }

    /// The answer, and the number of reads that it took.
    private func register(
        _ registration: PushNotificationRegistration, message: UInt8
    ) async throws -> (error: PushNotificationRegistrationResponse.ErrorType?, reads: Int) {
        let envelope = try MetadataEnvelope(parsing: client.envelope(registration), wakuSigner: client.identity.publicKey)
        let claim = try #require(rules.claim(in: envelope))
        var command = handler.change(claim, MessageHash(bytes: [UInt8](repeating: message, count: 32)), at: Timestamp(rawValue: 1))
        var reads = 0
        while case .read(let more, let next) = command {
            reads += more.count
            command = try next(try fixture.store.read(.read(more) { .done($0) }))
        }
        return (try await fixture.store.commit(command).error, reads)
    }

    @Test func anOldMessageReadsNoMoreThanItself() async throws {
        let stored = client.registration(version: 2) { $0.blockedChatList = Array(repeating: [7], count: 10_000) }
        #expect(try await register(stored, message: 1).error == nil)
        // Signed anew, so that it is another message.
        #expect(try await register(stored, message: 2) == (nil, 2))
        var small = stored
        small.blockedChatList = []
        #expect(try await register(small, message: 3) == (.versionMismatch, 1))
        var old = stored
        old.version = 1
        #expect(try await register(old, message: 4) == (.versionMismatch, 1))
    }
}
