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

/// Limits are asked before the store's writer reads the registrations that a request is about.
@Suite(.timeLimit(.minutes(5))) struct RequestReadingTests {
    private let fixture: StatusStoreFixture
    private let limits = StatusLimits(.standard)
    private let handler: RequestHandler
    private let server = PrivateKey.generate().publicKey
    private let now = Timestamp(rawValue: 1_700_000_000_000_000_000)

    init() throws {
        fixture = try StatusStoreFixture()
        handler = RequestHandler(
            rules: RequestRules(maximumAge: .seconds(600)), registrations: fixture.registrations, limits: limits)
    }

    /// - Parameter byteCount: the size of its lists.
    private func registered(_ byteCount: Int, _ change: (inout PushNotificationRegistration) -> Void = { _ in }) async throws -> TestClient
    {
        let client = TestClient(of: server)
        let registration = client.registration {
            $0.allowedMentionsChatList = Array(repeating: [UInt8](repeating: 7, count: 254), count: byteCount >> 8)
            change(&$0)
        }
        try await fixture.store.commit(
            fixture.registrations.store(registration, bytes: registration.encoded(), as: client.key, at: now))
        return client
    }

    /// The errors in the answer; nil for notifications that are in the outbox, and for success.
    private func request(_ entries: [PushNotification], number: Int = 0) async throws -> [PushNotificationReport.ErrorType?] {
        let request = PushNotificationRequest(requests: entries, messageID: [UInt8(number)])
        let envelope = try MetadataEnvelope(
            parsing: MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: .generate()).bytes, wakuSigner: server)
        let pending = PendingRequest(
            request, MessageOrigin(envelope), hash: MessageHash(bytes: [UInt8](repeating: UInt8(number), count: 32)),
            pubsubTopic: .statusDefault, times: nil)
        let outcome = try await fixture.store.commit(handler.change(request, pending, expires: now + .seconds(600), at: now))
        return outcome.pending.entries.map { entry in
            if case .known(let error) = entry.result { error } else { nil }
        }
    }

    @Test func aFloodAboutLongListsLeavesOthersTheirShare() async throws {
        var own: [TestClient] = []
        for _ in 0..<8 { own.append(try await registered(1 << 20)) }
        let (ordinary, known) = (try await registered(1_000), try await registered(1 << 20) { $0.deviceToken = DeviceToken("known") })
        limits.accepted(limits.standings.hasher.payer(.deviceToken, Array("known".utf8)), of: known.keyHash, at: now)

        // With wrong access tokens no other limit is asked.
        let entries = own.map { $0.notification { $0.accessToken = AccessToken("00000000-0000-0000-0000-000000000000") } }
        var errors: [PushNotificationReport.ErrorType?] = []
        for number in 0..<10 { errors += try await request(entries, number: number) }
        let read = errors.count { $0 == .wrongToken }
        // 12 MiB of 80 are open to strangers.
        #expect(read > 0 && read <= 12)
        #expect(errors.count { $0 == .internalError } == errors.count - read)

        // Not the whole request fails.
        let mixed = try await request(Array(entries.prefix(2)) + [ordinary.notification(), known.notification()], number: 11)
        #expect(mixed.suffix(2) == [nil, nil])
    }

    @Test func contractSizesAreRead() async throws {
        // As many entries and bytes as a registration may have.
        let longest = try await registered(0) {
            $0.allowedKeyList = Array(repeating: [UInt8](repeating: 7, count: 64), count: PushNotificationRegistration.listLimit)
        }
        #expect(try await request([longest.notification()]) == [nil])
    }

    @Test func registrationsOfEightDevicesWithOrdinaryListsAreFree() async throws {
        var clients: [TestClient] = []
        for _ in 0..<8 { clients.append(try await registered(1_500)) }
        // All that is open to strangers is used up.
        for number in 0..<4_000 {
            let charge = Charge(limits.standings.hasher.payer(.registrant, [UInt8(number & 255), UInt8(number >> 8)]), .stranger)
            _ = limits.refuses { $0.reading(byteCount: 48 << 10, for: .decision, by: charge, at: now) }
        }
        #expect(try await request(clients.map { $0.notification() }) == Array(repeating: nil, count: 8))
    }
}
