import Delivery
import GRDB
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushClient
import RateLimits
import Storage
import StoreSQLite
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode
@testable import StatusServer

@Suite("A node with limits")
struct NodeLimitsTests {
    private static func limits(_ settings: String...) throws -> Limits {
        var limits = Limits.none
        for setting in settings { try limits.set(setting) }
        return limits
    }

    private func message(_ payload: [UInt8], _ topic: String) -> WakuMessage {
        WakuMessage(payload: payload, contentTopic: ContentTopic(TopicTag(of: topic)), timestamp: .now())
    }

    private func request(of device: TestClient, by sender: PrivateKey, to server: PublicKey) -> WakuMessage {
        let request = PushNotificationRequest(requests: [device.notification()], messageID: randomBytes(32))
        let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: sender).bytes
        return message(TestPayload.sealed(envelope, signedBy: sender, to: server), StatusTopics.partitioned(server))
    }

    private func query(about registrant: TestClient, by sender: PrivateKey) -> WakuMessage {
        let topic = StatusTopics.query(registrant.keyHash)
        let envelope = MetadataEnvelope.encode(
            .query, payload: PushNotificationQuery(publicKeys: [registrant.keyHash]).encoded(), signedBy: sender
        ).bytes
        return message(TestPayload.sealed(envelope, signedBy: sender, topic: topic), topic)
    }

    private func registration(_ client: TestClient, version: UInt64 = 1) -> WakuMessage {
        message(
            TestPayload.sealed(client.envelope(client.registration(version: version)), signedBy: client.identity, to: client.server),
            StatusTopics.partitioned(client.server))
    }

    @Test("serves other senders while one key floods it")
    func flood() async throws {
        let (folder, identity, gorush) = (try TemporaryFolder(), PrivateKey.generate(), ScriptedGorush())
        let server = identity.publicKey
        let device = TestClient(of: server)
        let (flooder, others) = (PrivateKey.generate(), (0..<20).map { _ in PrivateKey.generate() })
        let limits = try Self.limits("requests-by-sender=1/d burst 10", "queries-by-sender=1/d burst 5")
        try await withFedNode(identity, folder.path, gorush, configure: { $0.limits = limits }) { node, relay in
            await relay.feed([registration(device)])
            try await node.wait { relay.published.count == 1 }
            for other in others {
                // In each batch the flood comes first, with twenty times as many messages.
                await relay.feed(
                    (0..<20).map { _ in request(of: device, by: flooder, to: server) }
                        + (0..<20).map { _ in query(about: device, by: flooder) }
                        + [request(of: device, by: other, to: server), query(about: device, by: other)])
            }
            try await node.wait { relay.published.count >= 1 + 10 + 5 + 2 * others.count }
            try await node.wait {
                node.count(.limit(.requestsBySender)) == 20 * others.count - 10
                    && node.count(.limit(.queriesBySender)) == 20 * others.count - 5
            }
            #expect(gorush.accepted.count == 10 + others.count)
            #expect(relay.published.count == 1 + 10 + 5 + 2 * others.count)
            #expect(node.count(.droppedLimited) == 40 * others.count - 15)
        }
    }

    private func unregistration(_ client: TestClient, version: UInt64 = 1) -> WakuMessage {
        message(
            TestPayload.sealed(
                client.envelope(client.unregistration(version: version)), signedBy: client.identity, to: client.server),
            StatusTopics.partitioned(client.server))
    }

    @Test(
        "limits the unregistration of a device that was never registered like a new registration",
        arguments: ["new-registrations=1/d burst 3", "registration-count=3", "installations-by-key=3"])
    func unfounded(limit: String) async throws {
        let (folder, identity) = (try TemporaryFolder(), PrivateKey.generate())
        let owner = PrivateKey.generate()
        let devices = (0..<10).map { TestClient(of: identity.publicKey, identity: owner, installationID: InstallationID("device-\($0)")) }
        let limits = try Self.limits(limit)
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { $0.limits = limits }) { node, relay in
            for device in devices { await relay.feed([unregistration(device)]) }
            try await node.wait { relay.published.count == devices.count }
            #expect(node.count(.registrationEnded) == 3)
            #expect(node.count(.registrationLimited) == 7)
            // A registered device may change its registration.
            await relay.feed([unregistration(devices[0], version: 2)])
            try await node.wait { node.count(.registrationEnded) == 4 }
        }
        let store = try NodeAssembly.store(in: folder.path, of: identity)
        #expect(try store.read(Registrations.countedRegistrations()) == 3)
    }

    @Test("stores no rows for unregistrations by keys that may not register, but ends their earlier registrations")
    func deniedUnregistration() async throws {
        let (folder, identity) = (try TemporaryFolder(), PrivateKey.generate())
        let registered = TestClient(of: identity.publicKey)
        let stranger = TestClient(of: identity.publicKey)
        try await withFedNode(identity, folder.path, ScriptedGorush()) { node, relay in
            await relay.feed([registration(registered)])
            try await node.wait { node.count(.registrationStored) == 1 }
        }
        var limits = Limits.none
        limits.allowed = []
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { [limits] in $0.limits = limits }) { node, relay in
            await relay.feed([unregistration(stranger), unregistration(registered, version: 2)])
            try await node.wait { relay.published.count == 2 }
            #expect(node.count(.registrationLimited) == 1 && node.count(.registrationEnded) == 1)
        }
        let store = try NodeAssembly.store(in: folder.path, of: identity)
        #expect(try store.read(Registrations(store.sealer).state(of: stranger.key)) == nil)
    }

    @Test("limits a flood by its sender, before it decrypts registrations")
    func sender() async throws {
        let (folder, identity) = (try TemporaryFolder(), PrivateKey.generate())
        let server = identity.publicKey
        let (flooder, other) = (PrivateKey.generate(), TestClient(of: server))
        let limits = try Self.limits("messages-by-sender=1/d burst 3")
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { $0.limits = limits }) { node, relay in
            let junk = (0..<50).map { _ -> WakuMessage in
                let envelope = MetadataEnvelope.encode(.registration, payload: randomBytes(50), signedBy: flooder).bytes
                return message(TestPayload.sealed(envelope, signedBy: .generate(), to: server), StatusTopics.partitioned(server))
            }
            await relay.feed(junk + [registration(other)])
            try await node.wait { relay.published.count == 1 && node.count(.limit(.messagesBySender)) == 47 }
            #expect(node.count(.registrationStored) == 1)
        }
    }

    @Test("answers INTERNAL_ERROR to a registration over the limit, and keeps existing ones")
    func counts() async throws {
        let fixture = try NodeFixture()
        let owner = PrivateKey.generate()
        let limits = try Self.limits("installations-by-key=2", "registration-count=3")
        try await fixture.withNode(configure: { $0.limits = limits }) { node async throws in
            func device(_ name: String, of owner: PrivateKey) -> TestClient {
                TestClient(of: node.server, identity: owner, installationID: InstallationID(name))
            }
            for name in ["phone", "tablet"] { #expect(try await node.register(device(name, of: owner)) == nil) }
            #expect(try await node.register(device("watch", of: owner)) == .internalError)
            // Existing registrations may change and end, and be replaced by others.
            #expect(try await node.register(device("phone", of: owner), version: 2) == nil)
            #expect(node.count(.limit(.installationsByKey)) == 1)

            let stranger = PrivateKey.generate()
            #expect(try await node.register(device("phone", of: stranger)) == nil)
            for known in [device("phone", of: owner), device("tablet", of: owner), device("phone", of: stranger)] {
                #expect(try await node.notify(known) == nil)
            }
            #expect(try await node.register(device("tablet", of: stranger)) == .internalError)
            #expect(node.count(.limit(.registrationCount)) == 1)
            #expect(node.count(.registrationLimited) == 2)

            // One that ends makes room at once, and only once.
            for version in 2...3 as ClosedRange<UInt64> {
                let ended = try await node.withClient(stranger) {
                    try await $0.unregister(InstallationID("phone"), version: version, with: node.server, timeout: .seconds(60))
                }
                #expect(ended == nil)
            }
            let next = device("phone", of: .generate())
            #expect(try await node.register(next) == nil)
            #expect(try await node.notify(next) == nil)
            #expect(try await node.register(device("tablet", of: stranger)) == .internalError)
        }
    }

    @Test("accepts registrations of allowed keys only, and unregistrations of all")
    func lists() async throws {
        let fixture = try NodeFixture()
        let (friend, foe) = (PrivateKey.generate(), PrivateKey.generate())
        try await fixture.withNode { node async throws in
            #expect(try await node.register(TestClient(of: node.server, identity: foe)) == nil)
        }
        var limits = Limits.none
        limits.allowed = [KeyHash(of: friend.publicKey).bytes]
        try await fixture.withNode(configure: { [limits] in $0.limits = limits }) { node async throws in
            #expect(try await node.register(TestClient(of: node.server, identity: friend)) == nil)
            #expect(try await node.register(TestClient(of: node.server, identity: foe), version: 2) == .internalError)
            #expect(node.count(.limit(.denied)) == 1)
            #expect(
                try await node.withClient(foe) {
                    try await $0.unregister(InstallationID("installation-1"), version: 3, with: node.server, timeout: .seconds(60))
                } == nil)
        }
    }

    @Test("answers INTERNAL_ERROR to notifications over a device's limit")
    func target() async throws {
        let fixture = try NodeFixture()
        let limits = try Self.limits("notifications-by-target=1/d burst 2")
        try await fixture.withNode(configure: { $0.limits = limits }) { node async throws in
            let (one, other) = (TestClient(of: node.server), TestClient(of: node.server))
            for client in [one, other] { #expect(try await node.register(client) == nil) }
            for _ in 0..<2 { #expect(try await node.notify(one) == nil) }
            #expect(try await node.notify(one) == .internalError)
            #expect(try await node.notify(other) == nil)
            #expect(node.count(.limit(.notificationsByTarget)) == 1)
        }
    }

    @Test("applies changed limits while it runs")
    func replaced() async throws {
        let fixture = try NodeFixture()
        try await fixture.withNode { node async throws in
            let client = TestClient(of: node.server)
            #expect(try await node.register(client) == nil)
            node.process.replaceLimits(try Self.limits("notifications-by-target=1/d"))
            #expect(try await node.notify(client) == nil)
            #expect(try await node.notify(client) == .internalError)
            node.process.replaceLimits(.none)
            #expect(try await node.notify(client) == nil)
        }
    }

    @Test("reports what was refused and displaced, and the greatest payers without their tokens")
    func report() async throws {
        let fixture = try NodeFixture()
        let limits = try Self.limits("notifications-by-target=1/d", "new-registrations=1/d burst 2")
        try await fixture.withNode(configure: {
            $0.limits = limits
            $0.outboxLimit = 1
            $0.awaitLimit = .milliseconds(100)
        }) { node async throws in
            let (one, other) = (TestClient(of: node.server), TestClient(of: node.server))
            for client in [one, other] { #expect(try await node.register(client, token: "a-token") == nil) }
            #expect(try await node.register(TestClient(of: node.server)) == .internalError)
            node.gorush.answer(.failed(retryAfter: .seconds(60)))
            // With room for one, one of two is evicted.
            for client in [one, other] { #expect(try await node.notify(client) == .internalError) }
            try await node.wait { node.count(.notificationEvicted) == 1 }
            #expect(try await node.notify(one) == .internalError)
            let report = node.node.limits.protocols.reduce(into: [String: LimitReport]()) { $0[$1.protocol] = $1.report }
            #expect(report["node"]?.refusals.map(\.limit) == ["outbox"])
            let status = try #require(report["status"])
            #expect(Set(status.refusals.map(\.limit)) == ["new_registrations", "notifications_by_target"])
            #expect(status.refusals.allSatisfy { $0.standing == "stranger" && $0.total == 1 })
            #expect(status.payers.contains { $0.kind == "deviceToken" && $0.work == 2 && $0.name.count == 8 })
            #expect(!"\(report)".contains("a-token"))
        }
    }

    /// A clock that is wrong for some time must not end registrations: their clients do not know that they would have to renew them.
    @Test func aStepOfTheClockEndsNoRegistration() async throws {
        let fixture = try NodeFixture()
        let step = Duration.seconds(100 * 86_400)
        let clock = Mutex(Timestamp.now() - step)
        let (old, new) = (PrivateKey.generate(), PrivateKey.generate())
        try await fixture.withNode(now: { clock.withLock(\.self) }) { node async throws in
            #expect(try await node.register(TestClient(of: node.server, identity: old)) == nil)
        }
        try await Self.live(for: step, clock, in: fixture)
        try await fixture.withNode(now: { clock.withLock(\.self) }) { node async throws in
            #expect(try await node.register(TestClient(of: node.server, identity: new)) == nil)
        }
        clock.withLock { $0 = $0 + .seconds(1) }
        try await fixture.withNode(
            configure: {
                $0.registrationLifetime = .seconds(90 * 86_400)
                $0.maintenanceInterval = .milliseconds(50)
            }, now: { clock.withLock(\.self) }
        ) { node async throws in
            // Maintenance has read the clock before it writes for the first time.
            try await node.wait { (try? node.node.store.read(Properties.property("alive at")))?.prefix(8) == clock.withLock(\.bytes)[...] }
            clock.withLock { $0 = $0 + step }
            try await node.wait { node.count(.registrationExpired) > 0 }
            clock.withLock { $0 = $0 - step }
            #expect(try await node.notify(TestClient(of: node.server, identity: new)) == nil)
            #expect(try await node.notify(TestClient(of: node.server, identity: old)) == .notRegistered)
        }
    }

    @Test("a damaged row does not stop the expiry of others")
    func expiryWithADamagedRow() async throws {
        let fixture = try NodeFixture()
        let clock = Mutex(Timestamp.now())
        let configure: @Sendable (inout ServerConfiguration) -> Void = {
            $0.registrationLifetime = .seconds(90 * 86_400)
            $0.maintenanceInterval = .milliseconds(10)
        }
        try await fixture.withNode(configure: configure, now: { clock.withLock(\.self) }) { node async throws in
            for _ in 0..<3 { #expect(try await node.register(TestClient(of: node.server)) == nil) }
        }
        let queue = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
        try await queue.write { try $0.execute(sql: "UPDATE registration SET version = 'damaged' WHERE id = 1") }
        try queue.close()
        try await Self.live(for: .seconds(91 * 86_400), clock, in: fixture)
        try await fixture.withNode(configure: configure, now: { clock.withLock(\.self) }) { node async throws in
            try await node.wait { node.count(.registrationExpired) == 2 }
        }
    }

    @Test("ends registrations that were not renewed, and no others, and keeps their versions")
    func expiry() async throws {
        let fixture = try NodeFixture()
        let clock = Mutex(Timestamp.now())
        let (old, renewed) = (PrivateKey.generate(), PrivateKey.generate())
        let configure: @Sendable (inout ServerConfiguration) -> Void = {
            $0.registrationLifetime = .seconds(90 * 86_400)
            $0.maintenanceInterval = .milliseconds(10)
        }
        try await fixture.withNode(configure: configure, now: { clock.withLock(\.self) }) { node async throws in
            for owner in [old, renewed] { #expect(try await node.register(TestClient(of: node.server, identity: owner)) == nil) }
        }
        try await Self.live(for: .seconds(60 * 86_400), clock, in: fixture)
        try await fixture.withNode(configure: configure, now: { clock.withLock(\.self) }) { node async throws in
            #expect(try await node.register(TestClient(of: node.server, identity: renewed), version: 2) == nil)
            #expect(node.count(.registrationExpired) == 0)
        }
        try await Self.live(for: .seconds(31 * 86_400), clock, in: fixture)
        try await fixture.withNode(configure: configure, now: { clock.withLock(\.self) }) { node async throws in
            try await node.wait { node.count(.registrationExpired) == 1 }
            // The version is kept.
            #expect(try await node.register(TestClient(of: node.server, identity: old), version: 1) == .versionMismatch)
            #expect(try await node.register(TestClient(of: node.server, identity: old), version: 2) == nil)
            #expect(try await node.register(TestClient(of: node.server, identity: renewed), version: 2) == .versionMismatch)
        }
    }
    @Test("a registration that could not be renewed while no node ran does not end for that")
    func outage() async throws {
        let fixture = try NodeFixture()
        // In the end it is right: requests of another time are not answered.
        let clock = Mutex(Timestamp.now() - .seconds((60 + 200 + 31) * 86_400))
        let (old, younger) = (PrivateKey.generate(), PrivateKey.generate())
        let configure: @Sendable (inout ServerConfiguration) -> Void = {
            $0.registrationLifetime = .seconds(90 * 86_400)
            $0.maintenanceInterval = .milliseconds(10)
        }
        try await fixture.withNode(now: { clock.withLock(\.self) }) { node async throws in
            #expect(try await node.register(TestClient(of: node.server, identity: old)) == nil)
        }
        try await Self.live(for: .seconds(60 * 86_400), clock, in: fixture)
        try await fixture.withNode(now: { clock.withLock(\.self) }) { node async throws in
            #expect(try await node.register(TestClient(of: node.server, identity: younger)) == nil)
        }
        clock.withLock { $0 = $0 + .seconds(200 * 86_400) }
        try await fixture.withNode(now: { clock.withLock(\.self) }) { node async throws in
            try await node.wait { (try? node.node.store.read(Properties.property("alive at")))?.prefix(8) == clock.withLock(\.bytes)[...] }
        }
        try await Self.live(for: .seconds(31 * 86_400), clock, in: fixture)
        try await fixture.withNode(configure: configure, now: { clock.withLock(\.self) }) { node async throws in
            try await node.wait { node.count(.registrationExpired) > 0 }
            #expect(try await node.notify(TestClient(of: node.server, identity: old)) == .notRegistered)
            #expect(node.count(.registrationExpired) == 1)
        }
    }

    /// Sets the clock ahead, as if a node had been running in that time.
    private static func live(for time: Duration, _ clock: borrowing Mutex<Timestamp>, in fixture: NodeFixture) async throws {
        let now = clock.withLock { clock in
            clock = clock + time
            return clock
        }
        let store = try NodeAssembly.existingStore(in: fixture.folder.path, of: nil)
        let alive = try #require(try store.read(Properties.property("alive at")))
        try await store.commit(StoreCommand.change([Properties.set("alive at", to: now.bytes + alive.dropFirst(8))]))
        try store.close()
    }
}
