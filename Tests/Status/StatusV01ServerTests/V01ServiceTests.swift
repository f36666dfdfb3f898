import Core
import Delivery
import NodeAPI
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import Storage
import StoreSQLite
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import StatusV01Server

struct V01ServiceTests {
    private let fixture: V01StoreFixture

    init() throws {
        fixture = try V01StoreFixture()
    }

    private func request(_ account: V01Account, _ number: UInt8) -> V01.Request {
        V01.Request(requests: [account.entry()], message: [1], messageID: [number], ackKey: [])
    }

    private func handler(_ identity: PrivateKey) throws -> (handler: V01Handler, service: any ProtocolService) {
        let node = BareNode(fixture.store, of: .statusV01, metrics: StatusPushV01.description.metrics)
        var configuration = StatusPushV01.Configuration()
        configuration.limits = .standard
        let service = try StatusPushV01(identity: identity, configuration).makeService(node.services)
        return (try #require(node.handler(V01Handler.self)), service)
    }

    /// Whoever gorush accepted a notification for is known, after a restart too.
    @Test func anAcceptedNotificationMakesKnown() async throws {
        let identity = PrivateKey.generate()
        let account = V01Account(of: identity.publicKey)
        try await fixture.take(account.register(version: 1), of: account)
        let (handler, _) = try handler(identity)
        func standing(_ handler: V01Handler) -> Standing { handler.limits.charge(of: account.keyHash, at: .now()).standing }
        let message = Decoded(
            V01AddressedCommand(command: .request(request(account, 1), key: [1], expires: .now() + .seconds(60)), server: 0), .request,
            hash: MessageHash(bytes: [UInt8](repeating: 1, count: 32)), pubsubTopic: .statusDefault)
        guard case .request(let outcome) = try await fixture.store.commit(handler.change(message, at: .now())) else {
            throw TestFailure("not a request")
        }
        let waiting = try #require(outcome.queued.first?.waiting)
        let posted = PostedNotification(delivery: waiting.delivery, device: waiting.device, version: 1)
        try await fixture.store.commit(.change(DeliveryStorage.accept(posted, postedAs: nil, at: .now())))
        #expect(standing(handler) == .stranger)
        handler.finish(message, .success(.request(outcome)))
        try await eventually { standing(handler) == .known }

        let (restarted, service) = try self.handler(identity)
        #expect(standing(restarted) == .stranger)
        try await service.run()
        #expect(standing(restarted) == .known)
    }

    private let now = Timestamp(rawValue: 1_700_000_000_000_000_000)

    /// Limits that have nothing left for strangers.
    private func exhausted() -> V01Limits {
        let limits = V01Limits(.standard)
        for number in 0..<4_000 {
            let charge = Charge(limits.hasher.payer(.registrant, [UInt8(number & 255), UInt8(number >> 8)]), .stranger)
            _ = limits.refuses { $0.reading(byteCount: 48 << 10, for: .decision, by: charge, at: now) }
        }
        return limits
    }

    /// A record over what is free is not read once nothing is left for strangers: the request fails, and its token is not called bad.
    @Test func recordsOfRequestsAreChargedBeforeTheyAreRead() async throws {
        let server = PrivateKey.generate().publicKey
        var accounts: [V01Account] = []
        for blocked in [0, 1_000] {
            let list = Array(repeating: [UInt8](repeating: 7, count: 64), count: blocked)
            accounts.append(V01Account(of: server, devices: [V01Account.device(blocked: list)]))
        }
        for account in accounts { try await fixture.take(account.register(version: 1), of: account) }
        let handler = V01RequestHandler(records: fixture.records, limits: exhausted(), apnsTopic: "")
        let whole = V01.Request(requests: accounts.map { $0.entry() }, message: [1], messageID: [1], ackKey: [])
        let outcome = try await fixture.store.commit(
            handler.change(whole, after: V01PendingRequest(), key: [1], expires: now + .seconds(60), times: nil, at: now))
        #expect(outcome.queued.count == 1)
        let accepted = Dictionary(uniqueKeysWithValues: outcome.deliveries.map { ($0, DeliveryOutcome.accepted) })
        #expect(outcome.pending.verdict(accepted) == (.internalError, false))
    }

    /// The answer to an outdated registration contains the record.
    @Test func theRecordOfAnAnswerIsChargedBeforeItIsRead() async throws {
        let list = Array(repeating: [UInt8](repeating: 7, count: 64), count: 1_000)
        let account = V01Account(of: PrivateKey.generate().publicKey, devices: [V01Account.device(blocked: list)])
        try await fixture.take(account.register(version: 2), of: account)
        #expect(try await fixture.take(account.register(version: 1), of: account, limits: V01Limits(.standard)) == .versionMismatch)
        #expect(try await fixture.take(account.register(version: 1), of: account, limits: exhausted(), at: now) == .internalError)
    }

    @Test func commandsThatAreDecidedAgainAreChargedOnce() async throws {
        var few = Limits.none
        for text in ["new-registrations=1/d", "registration-count=1", "notifications-by-target=1/d"] { try few.set(text) }
        let limits = V01Limits(few)
        let account = V01Account(of: PrivateKey.generate().publicKey)
        let rules = V01.RegisterRules(server: account.server)
        let claim = try #require(rules.claim(in: account.register(version: 1), from: account.identity.publicKey))
        let register = V01RegisterHandler(rules: rules, records: fixture.records, limits: limits, drain: Drain()).change(claim, at: now)
        #expect(try await fixture.store.commit(register.decidedOnce(in: fixture.store)).error == nil)

        let handler = V01RequestHandler(records: fixture.records, limits: limits, apnsTopic: "")
        func command(_ number: UInt8) -> StoreCommand<V01RequestHandler.Outcome> {
            handler.change(
                request(account, number), after: V01PendingRequest(), key: [number], expires: now + .seconds(60), times: nil, at: now)
        }
        #expect(try await fixture.store.commit(command(1).decidedOnce(in: fixture.store)).queued.count == 1)
        #expect(try await fixture.store.commit(command(2)).queued.isEmpty)
    }

    @Test func maintenanceRemovesRetiredAccessTokens() async throws {
        let (account, start) = (V01Account(of: PrivateKey.generate().publicKey), Timestamp(rawValue: 1))
        try await fixture.take(account.register(version: 1), of: account, at: start)
        try await fixture.take(account.unregister(version: 2), of: account, at: start)
        let thief = V01Account(of: account.server, accessToken: account.accessToken)
        let (_, service) = try handler(.generate())
        let end = start + Records.tokenRetirement
        for (time, isTaken) in [(end, true), (end + .nanoseconds(1), false)] {
            await service.prune(Retention(cutoff: time, rowLimit: 1_000, now: time))
            #expect((try await fixture.take(thief.register(version: 1), of: thief) == .malformedMessage) == isTaken)
        }
    }

    @Test func registeredDevicesAreMeasured() async throws {
        let identity = PrivateKey.generate()
        let account = V01Account(of: identity.publicKey)
        try await fixture.take(account.register(version: 1), of: account)
        let node = BareNode(fixture.store, of: .statusV01, metrics: StatusPushV01.description.metrics)
        let service = try StatusPushV01(identity: identity).makeService(node.services)
        // Unlike a scrape, it waits for a slow store.
        await service.countDevices()
        await service.updateGauges(node.services.counters)
        let text = node.services.counters.registry.exposition()
        #expect(text.contains("\nwaku_push_registrations{protocol=\"status-v0.1\",platform=\"apn\",state=\"registered\"} 1.0\n"))
    }
}
