import Core
import Delivery
import Foundation
import Logging
import LoopbackRelay
import NodeAssembly
import RateLimits
import ServiceLifecycle
import StatusProtocol
import Storage
import StoreSQLite
import TestSupport
import Testing
import Waku
import WakuCrypto
import WakuPushNode

@testable import NodeAPI
@testable import PushNode
@testable import TopicPush

/// The example of a protocol in another package, which is built with the public declarations alone.
@Suite("A protocol of another package: topic push")
struct TopicPushTests {
    static let chat = "/chat/1/lobby/proto"
    let folder: TemporaryFolder
    let identity = PrivateKey.generate()
    let owner = PrivateKey.generate()
    let gorush = ScriptedGorush()
    let relay = FeedRelay()

    init() throws {
        folder = try TemporaryFolder()
    }

    /// - Parameters:
    ///   - key: nil: the owner.
    ///   - token: nil: one with the version in its name.
    ///   - topics: none ends the device.
    ///   - server: nil: the node.
    ///   - clock: by how much the sender's clock is ahead.
    func registration(
        version: UInt64 = 1, by key: PrivateKey? = nil, token: String? = nil, topics: [String] = [chat], end: UInt64 = 4_000_000_000,
        to server: PublicKey? = nil, clock: Duration = .zero
    ) throws -> WakuMessage {
        let device = topics.isEmpty ? nil : Registration(token: token ?? "token-\(version)", topics: topics, text: "somebody wrote")
        let payload = try SealedRegistration.seal(
            device, version: version, end: end, on: Registration.topic, by: key ?? owner, to: server ?? identity.publicKey)
        return WakuMessage(payload: payload, contentTopic: Registration.topic, timestamp: .now() + clock)
    }

    /// The results that the node has answered.
    private var answers: [RegistrationResult] {
        let topic = RegistrationAnswer.topic(of: owner.publicKey, answering: Registration.topic)
        return relay.published.filter { $0.contentTopic == topic }.compactMap {
            RegistrationAnswer(opening: $0.payload, with: owner, from: identity.publicKey)?.result
        }
    }

    func post(_ text: String, on topic: String = chat, clock: Duration = .zero) -> WakuMessage {
        WakuMessage(payload: Array(text.utf8), contentTopic: ContentTopic(rawValue: topic), timestamp: .now() + clock)
    }

    /// The tokens of the notifications that gorush accepted.
    var tokens: [String] { gorush.accepted.map(\.deviceToken.revealed) }

    /// Passes the owner's first registration to a node, which listens on its topics once it is durable.
    func register(_ node: NodeService, _ registration: WakuMessage) async throws {
        await relay.feed([registration])
        try await node.wait { node.topicCount == 1 }
    }

    /// Runs a node of the program to which topic push is added, and stops it gracefully.
    ///
    /// - Parameter data: its data folder; nil: that of the test.
    func withNode(
        in data: String? = nil, at store: StoreLocation = .dataFolder, limits: Limits = .none,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, speaking protocols: [ProtocolDescription] = [TopicPush.description],
        configure: (inout ServerConfiguration) -> Void = { _ in }, _ body: @escaping @Sendable (NodeService) async throws -> Void
    ) async throws {
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var configuration = ServerConfiguration(identity: identity, dataPath: data ?? folder.path)
        configuration.store = store
        configuration.limits = limits
        configure(&configuration)
        let server = try NodeAssembly.$added.withValue(protocols) {
            try Server(configuration, gorush: gorush, logger: quiet, now: now) { [relay] _ in relay }
        }
        let services = ServiceGroup(services: [server.node], logger: quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            do {
                try await server.node.wait { relay.state == .attached }
                try await body(server.node)
            } catch {
                await services.triggerGracefulShutdown()
                throw error
            }
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
        }
    }

    @Test("Messages on a registered topic notify once each; others are foreign", arguments: StoreEngine.allCases)
    func notifies(engine: StoreEngine) async throws {
        let message = post("hello")
        let store = try await engine.location()
        try await withNode(at: store) { node in
            try await register(node, try registration())
            for _ in 1...2 { await relay.feed([message]) }
            await relay.feed([post("elsewhere", on: "/chat/1/garden/proto")])
            try await node.wait { gorush.accepted.count == 1 && node.counters.count(.foreign) == 1 }
            #expect(gorush.accepted.map(\.deviceToken) == [DeviceToken("token-1")])
            #expect((gorush.accepted.first?.content as? TextContent)?.text == "somebody wrote")
        }
        // After a restart the topic is known, and a message is handled again without a second notification.
        try await withNode(at: store) { node in
            await relay.feed([message, post("again")])
            try await node.wait { gorush.accepted.count == 2 }
        }
        #expect(gorush.accepted.count == 2)
    }

    @Test("An earlier version does not replace a later one, also after unregistering and a restart; a device is not notified after its end")
    func versions() async throws {
        let (first, ended) = (try registration(), try registration(version: 3, topics: []))
        try await withNode { node in
            try await register(node, first)
            // Shows that each message was handled.
            await relay.feed([try registration(by: .generate(), token: "other")])
            for message in [ended, try registration(version: 2), post("hello")] { await relay.feed([message]) }
            try await node.wait { tokens.count == 1 }
        }
        try await withNode { node in
            for message in [ended, first, try registration(version: 2), post("after the restart")] { await relay.feed([message]) }
            for message in [try registration(version: 4), post("current")] { await relay.feed([message]) }
            try await node.wait { tokens.count == 4 }
            for message in [try registration(version: 5, end: 1), post("too late")] { await relay.feed([message]) }
            try await node.wait { tokens.count == 5 }
        }
        #expect(tokens.sorted() == ["other", "other", "other", "other", "token-4"])
    }

    /// Its lifetime is longer than `--max-request-age`.
    @Test("The age of the oldest waiting notification does not depend on its lifetime")
    func age() async throws {
        gorush.answer(.failed(retryAfter: nil))
        try await withNode { node in
            try await register(node, try registration())
            await relay.feed([post("hello")])
            try await node.wait { gorush.attempts > 0 }
            let metrics = Scrape(await node.observation.gauges.exposition(isReady: true))
            #expect(metrics[.outboxAge] ?? 0 > 0)
        }
    }

    @Test("A clock that is set ahead does not end the device of a waiting notification")
    func clockAhead() async throws {
        let clock = SetClock()
        gorush.answer(.failed(retryAfter: nil))
        try await withNode(now: { clock.now }) { node in
            try await register(node, try registration(end: UInt64(Timestamp.now().rawValue / 1_000_000_000) + 3600))
            await relay.feed([post("hello")])
            try await node.wait { gorush.attempts > 0 }
            clock.set(.seconds(86_400))
            let attempts = gorush.attempts
            try await node.wait { gorush.attempts > attempts || node.counters.count(.notificationUnregistered) > 0 }
            clock.set(.zero)
            gorush.answer(.accepted)
            try await node.wait { gorush.accepted.count == 1 || node.counters.count(.notificationUnregistered) > 0 }
            #expect(gorush.accepted.count == 1)
        }
    }

    @Test("The owner is answered: a repeated registration is no error, an outdated one is; after an end, the same version is outdated")
    func answeredRegistrations() async throws {
        try await withNode { node in
            for (version, topics) in [(2, [Self.chat]), (2, [Self.chat]), (1, [Self.chat]), (3, []), (3, []), (2, [Self.chat])]
                as [(UInt64, [String])]
            {
                let count = answers.count
                await relay.feed([try registration(version: version, topics: topics)])
                try await node.wait { answers.count == count + 1 }
            }
        }
        #expect(answers == [.stored, .repeated, .outdated, .ended, .repeated, .outdated])
    }

    @Test("A registration to another node, for another protocol, or with a changed payload is dropped")
    func foreignRegistrations() async throws {
        let device = Registration(token: "token", topics: [Self.chat], text: "text")
        let other = PrivateKey.generate()
        let payload = try SealedRegistration.seal(
            device, version: 1, end: 4_000_000_000, on: Registration.topic, by: owner, to: other.publicKey)
        func opened(_ payload: [UInt8], on topic: ContentTopic = Registration.topic) -> SealedRegistration<Registration>? {
            SealedRegistration(opening: payload, on: topic, with: [identity, other])
        }
        #expect(opened(payload)?.owner == owner.publicKey)
        #expect(opened(payload)?.version == 1)
        let forwarded = ECIES.seal(try ECIES.open(payload, with: other), to: identity.publicKey)
        #expect(opened(forwarded)?.owner != owner.publicKey)
        #expect(opened(payload, on: ContentTopic(rawValue: Self.chat))?.owner != owner.publicKey)
        let many = Registration(token: "token", topics: (1...21).map { "/chat/1/\($0)/proto" }, text: "")
        func sealed(_ device: Registration?, version: UInt64, end: UInt64 = 4_000_000_000) throws -> [UInt8] {
            try SealedRegistration.seal(device, version: version, end: end, on: Registration.topic, by: owner, to: identity.publicKey)
        }
        #expect(try opened(sealed(many, version: 1)) == nil)
        #expect(try opened(sealed(device, version: 0)) == nil)
        #expect(try opened(sealed(device, version: 1, end: .max)) == nil)
        let texts = [256, 257, 1024, 1025, 4096, 4097, 20_000].map { String(repeating: "t", count: $0) }
        for (token, topic, text, isValid) in [
            (4, 0, 2, true), (5, 0, 2, false), (6, 0, 2, false), (4, 1, 2, false), (4, 0, 3, false),
        ] {
            let long = Registration(token: texts[token], topics: [texts[topic]], text: texts[text])
            #expect(try (opened(sealed(long, version: 1)) != nil) == isValid)
        }
        try await withNode { node in
            await relay.feed([WakuMessage(payload: [1, 2, 3], contentTopic: Registration.topic, timestamp: .now())])
            try await node.wait { node.counters.count(.droppedMalformedMessage) == 1 }
        }
    }

    @Test("An answer of another node, or to another owner, is not opened")
    func foreignAnswers() throws {
        let answer = RegistrationAnswer(.stored, to: Keccak256.hash([1]))
        let payload = answer.sealed(to: owner.publicKey, by: identity)
        #expect(RegistrationAnswer(opening: payload, with: owner, from: identity.publicKey)?.result == .stored)
        #expect(RegistrationAnswer(opening: payload, with: owner, from: owner.publicKey) == nil)
        #expect(RegistrationAnswer(opening: payload, with: identity, from: identity.publicKey) == nil)
        let topic = RegistrationAnswer.topic(of: owner.publicKey, answering: Registration.topic)
        #expect(topic.rawValue.wholeMatch(of: /\/topic-push\/1\/registrations-0x[0-9a-f]{8}\/json/) != nil)
    }

    /// A store with the tables of topic push, and registrations that are stored without a node.
    private struct Stored {
        let store: any Store
        let identity: PrivateKey
        let drain = Drain()
        var limits: RegistrationLimits?
        let devices = Subscriptions.devices

        func register(
            _ version: UInt64, by key: PrivateKey, token: String? = "token", topics: [String] = [chat], end: UInt64 = 1000,
            at now: Timestamp = .now()
        ) async throws -> RegistrationResult {
            let device = token.map { Registration(token: $0, topics: topics, text: "text") }
            let payload = try SealedRegistration.seal(
                device, version: version, end: end, on: Registration.topic, by: key, to: identity.publicKey)
            let opened = try #require(SealedRegistration<Registration>(opening: payload, on: Registration.topic, with: [identity]))
            return try await store.commit(devices.store(opened, sealer: store.sealer, drain: drain, limits: limits, at: now))
        }

        func rows(_ filter: OwnerFilter = OwnerFilter()) throws -> [RegisteredOwner] {
            try store.read(devices.rows(filter, limit: 100, offset: 0))
        }

        var topics: [String] { get throws { try store.read(Subscriptions.topics()).map(\.rawValue).sorted() } }
        var counts: [Int] { get throws { try devices.storedCounts(in: store, of: "test").map(\.count) } }
    }

    private func withStore(
        _ engine: StoreEngine = .sqlite, limits text: String? = nil, in name: String = "store", _ body: (Stored) async throws -> Void
    ) async throws {
        let data = folder.path + "/" + name
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        let store = try await engine.location().open(
            in: data, storageKey: Sealer.storageKey(of: identity),
            parts: [DeliveryStorage.part, TopicPush.description.part])
        defer { try? store.close() }
        var stored = Stored(store: store, identity: identity)
        if let text {
            var limits = Limits.none
            try limits.set(text)
            stored.limits = RegistrationLimits(limits, of: .other, payers: PayerHasher(key: .random()))
        }
        try await body(stored)
    }

    /// A query for one is too long for a store, which refuses it each time.
    @Test("Topics of more than 256 bytes are not learned")
    func longTopics() {
        let topics = [256, 257].map { ContentTopic(rawValue: String(repeating: "t", count: $0)) }
        let learned = LearnedTopics(own: [])
        learned.insert(topics)
        #expect(learned.topics(limit: 9) == [topics[0]])
        learned.replace(topics)
        #expect(learned.topics(limit: 9) == [topics[0]] && !learned.contains(topics[1].listeningTag))
    }

    @Test("An import does not end the minute of the limits")
    func importDuringAMinute() async throws {
        try await withNode(limits: .standard) { node in
            try await register(node, try registration())
            let service = try #require(node.services.first { $0 is RegistrationTableService })
            #expect(service.limitReport?.payers.count == 1)
            try await service.reload()
            #expect(service.limitReport?.payers.count == 1)
        }
    }

    @Test("A topic that is learned while all are read stays")
    func learnedMeanwhile() async throws {
        let (former, new) = (ContentTopic(rawValue: "/chat/1/former/proto"), ContentTopic(rawValue: "/chat/1/new/proto"))
        let stored = ContentTopic(rawValue: Self.chat)
        let learned = LearnedTopics(own: [])
        learned.insert([former])
        try await withStore { store in
            #expect(try await store.register(1, by: owner) == .stored)
            let reading = Subscriptions.topics().map { topics in
                learned.insert([new])
                return topics
            }
            try await learned.replace(by: reading, in: store.store)
            #expect(learned.contains(former) && learned.contains(new) && learned.contains(stored))
            try await learned.replace(by: Subscriptions.topics(), in: store.store)
            #expect(learned.topics(limit: 9) == [stored])
        }
    }

    @Test("A draining node refuses registrations; a stored device may change; rows end at the latest end", arguments: StoreEngine.allCases)
    func table(engine: StoreEngine) async throws {
        try await withStore(engine) { stored in
            let (store, devices) = (stored.store, stored.devices)
            #expect(try await stored.register(.max - 1, by: owner) == .stored)
            #expect(try store.read(Subscriptions.topics(of: owner.publicKey.compressed)).map(\.rawValue) == [Self.chat])
            #expect(try store.read(Subscriptions.topics(of: identity.publicKey.compressed)).isEmpty)
            #expect(try await stored.register(.max, by: owner, end: 500) == .stored)
            #expect(try await stored.register(.max, by: owner, end: 500) == .repeated)
            #expect(try stored.counts == [1, 0])
            try await devices.expire(at: Timestamp(rawValue: 999_000_000_000), in: store)
            stored.drain.isOn = true
            #expect(try await stored.register(.max, by: owner, end: 500) == .repeated)
            #expect(try await stored.register(.max, by: owner, end: 600) == .failed)
            try await devices.expire(at: Timestamp(rawValue: 1001_000_000_000), in: store)
            #expect(try await stored.register(1, by: owner) == .failed)
            stored.drain.isOn = false
            #expect(try await stored.register(1, by: owner, token: nil) == .ended)
            #expect(try stored.counts == [0, 1])
        }
    }

    @Test(
        "At the limit a new owner displaces the oldest row that was never notified, with its topics; the others stay",
        arguments: StoreEngine.allCases)
    func displacement(engine: StoreEngine) async throws {
        let keys = (0..<6).map { _ in PrivateKey.generate() }
        let start = Timestamp.now()
        func time(_ number: Int) -> Timestamp { start + .seconds(number) }
        try await withStore(engine, limits: "registration-count=3") { stored in
            let source = stored.devices.deliverySource(stored.store.sealer)
            for number in 0..<3 {
                #expect(
                    try await stored.register(1, by: keys[number], topics: ["/chat/1/\(number)/proto"], at: time(number)) == .stored)
            }
            // The first is notified, the second is renewed: the third is the oldest.
            let first = try #require(
                try stored.store.read(StoreCommand.find(stored.devices.find(.bytes(keys[0].publicKey.compressed))) { .done($0) }).first)
            let used = try #require(source.noteAccepted(try first.integer(0), at: time(3)))
            try await stored.store.commit(.change([used]))
            #expect(try await stored.register(2, by: keys[1], topics: ["/chat/1/1/proto"], at: time(4)) == .stored)
            #expect(try await stored.register(1, by: keys[3], topics: ["/chat/1/3/proto"], at: time(5)) == .stored)
            #expect(try stored.rows().map(\.owner) == [0, 1, 3].map { keys[$0].publicKey.compressed })
            #expect(try stored.topics == [0, 1, 3].map { "/chat/1/\($0)/proto" })
            // A tombstone of a device that was never notified makes room too.
            #expect(try await stored.register(3, by: keys[1], token: nil, at: time(6)) == .ended)
            #expect(try await stored.register(1, by: keys[4], topics: [], at: time(7)) == .stored)
            #expect(try await stored.register(1, by: keys[5], topics: [], at: time(8)) == .stored)
            #expect(try stored.rows().map(\.owner) == [0, 4, 5].map { keys[$0].publicKey.compressed })
            for row in try stored.rows() where !row.isUsed {
                let found = try stored.store.read(StoreCommand.find(stored.devices.find(.bytes(row.owner))) { .done($0) })
                try await stored.store.commit(.change([try #require(source.noteAccepted(try found[0].integer(0), at: time(9)))]))
            }
            #expect(try await stored.register(1, by: .generate(), at: time(10)) == .full)
            #expect(try await stored.register(2, by: keys[0], at: time(11)) == .stored)
        }
    }

    @Test("Exported registrations are merged into another store with their topics, marks and ends, unless it has a newer version")
    func merge() async throws {
        let other = PrivateKey.generate()
        try await withStore { from in
            #expect(try await from.register(2, by: owner, end: 2000) == .stored)
            #expect(try await from.register(3, by: owner, topics: [Self.chat, "/chat/1/garden/proto"], end: 1000) == .stored)
            #expect(try await from.register(1, by: other, token: nil) == .ended)
            var copies: [OpenedRegistration] = []
            try from.devices.forEach(OwnerFilter(), in: from.store) { opened in
                copies.append(opened)
                return true
            }
            #expect(copies.map { $0.address?.gorushDevice?.token } == [DeviceToken("token"), nil])
            for engine in StoreEngine.allCases {
                try await withStore(engine, in: "other-\(engine)") { [copies] into in
                    #expect(try await into.register(1, by: owner, topics: ["/chat/1/former/proto"]) == .stored)
                    for copy in copies {
                        #expect(into.devices.isValid(copy))
                        #expect(try await into.store.commit(into.devices.merge(copy, by: into.store.sealer)))
                        #expect(try await into.store.commit(into.devices.merge(copy, by: into.store.sealer)) == false)
                    }
                    #expect(try into.topics == ["/chat/1/garden/proto", Self.chat])
                    #expect(try into.counts == [1, 1])
                    #expect(
                        try await into.register(3, by: owner, topics: [Self.chat, "/chat/1/garden/proto"], end: 1000) == .repeated)
                    #expect(try await into.register(1, by: other) == .outdated)
                    let row = try #require(try into.rows(OwnerFilter(prefix: hexString(owner.publicKey.compressed.prefix(5)))).first)
                    #expect(row.end == Timestamp(rawValue: 2000_000_000_000))
                    #expect(try await into.store.commit(into.devices.end(row)))
                    #expect(try into.topics == [])
                    #expect(try into.counts == [0, 2])
                }
            }
            let row = try #require(copies.first?.row)
            for content in [Array("{}".utf8), []] { #expect(!from.devices.isValid(OpenedRegistration(row, content: content))) }
        }
    }

    @Test("A stored device that can't be decoded is not notified, and does not hold up the others", arguments: StoreEngine.allCases)
    func undecodable(engine: StoreEngine) async throws {
        let other = PrivateKey.generate()
        try await withStore(engine) { stored in
            let (store, devices) = (stored.store, stored.devices)
            for key in [owner, other] { #expect(try await stored.register(1, by: key) == .stored) }
            let row = Value.bytes(owner.publicKey.compressed)
            let sealed = store.sealer.seal(Array("{}".utf8), in: devices.table, boundTo: [row])
            let alter = Mutation(devices.table, .updateAny([devices.sealed], where: [.equal(devices.owner)]))
            try await store.commit(.change([alter(sealed, row)]))
            let node = BareNode(store, of: .other, metrics: [])
            let queued = try await store.commit(
                devices.notify(
                    [owner, other].map(\.publicKey.compressed), of: MessageHash(bytes: [1]), at: .now(), times: nil, by: node.services))
            #expect(queued.count == 1)
            var tokens: [DeviceToken?] = []
            try devices.forEach(OwnerFilter(), in: store) { opened in
                tokens.append(opened.address?.gorushDevice?.token)
                return true
            }
            #expect(tokens == [nil, DeviceToken("token")])
        }
    }

    @Test("Messages on learned topics that were missed while the node did not run are looked up in the store")
    func caughtUp() async throws {
        let fixture = try NodeFixture(network: LoopbackNetwork())
        try await NodeAssembly.$added.withValue([TopicPush.description]) {
            try await ServedNetwork.run(fixture.network) { served in
                let port = await served.port
                let attach: @Sendable (RelayNeeds, LoopbackParticipant) throws -> any Relay = { needs, _ in
                    try served.relay(port: port, needs, settling: .seconds(5))
                }
                @Sendable func registration(_ version: UInt64, _ topics: [String]) throws -> WakuMessage {
                    let device = Registration(token: "token", topics: topics, text: "somebody wrote")
                    let payload = try SealedRegistration.seal(
                        device, version: version, end: 4_000_000_000, on: Registration.topic, by: owner, to: fixture.identity.publicKey)
                    return WakuMessage(payload: payload, contentTopic: Registration.topic, timestamp: .now())
                }
                try await fixture.withNode(makeRelay: attach) { running in
                    let node = running.process.node
                    try await node.wait { served.isAttached }
                    fixture.network.publish(try registration(1, [Self.chat]), on: .statusDefault)
                    try await node.wait { node.topicCount == 1 }
                }
                // Nothing is kept for a poller.
                fixture.network.publish(post("missed"), on: .statusDefault)
                fixture.network.publish(post("missed by nobody", on: "/chat/1/garden/proto"), on: .statusDefault)
                fixture.network.restart()
                try await fixture.withNode(makeRelay: attach) { running in
                    try await running.process.node.wait { fixture.gorush.accepted.count == 1 }
                }
                // The registration and the message that it asks for are both missed.
                fixture.network.publish(try registration(2, [Self.chat, "/chat/1/garden/proto"]), on: .statusDefault)
                fixture.network.publish(post("missed too", on: "/chat/1/garden/proto"), on: .statusDefault)
                fixture.network.restart()
                try await fixture.withNode(makeRelay: attach) { running in
                    let node = running.process.node
                    try await node.wait { fixture.gorush.accepted.count >= 2 }
                    #expect(node.topicCount == 2)
                }
            }
        }
    }

    @Test("Waiting notifications are delivered after a restart, to the current token")
    func restart() async throws {
        gorush.answer(.failed(retryAfter: nil))
        try await withNode { node in
            try await register(node, try registration())
            await relay.feed([post("hello")])
            try await node.wait { gorush.attempts > 0 }
            await relay.feed([try registration(version: 2)])
            try await node.wait { answers.count == 2 }
        }
        gorush.answer(.accepted)
        try await withNode { node in
            try await node.wait { gorush.accepted.map(\.deviceToken) == [DeviceToken("token-2")] }
        }
    }

    @Test("Its devices are encrypted at rest, beside those of Status, and included in the database check")
    func encrypted() async throws {
        let client = TestClient(of: identity.publicKey)
        try await withNode { node in
            let status = WakuMessage(
                payload: TestPayload.sealed(client.envelope(client.registration()), signedBy: client.identity, to: identity.publicKey),
                contentTopic: ContentTopic(TopicTag(of: StatusTopics.personal(identity.publicKey))), timestamp: .now())
            await relay.feed([try registration(), status])
            try await node.wait { relay.published.count == 2 }
        }
        let path = DataFolder.databasePath(in: folder.path)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        for secret in ["somebody wrote", "token-1"] { #expect(bytes.range(of: Data(secret.utf8)) == nil) }
        let inspection = try StoreInspection(
            of: path, storageKey: Sealer.storageKey(of: identity), parts: NodeAssembly.parts + [TopicPush.description.part])
        #expect(inspection.rows?["topic_push_device"] == StoreInspection.Rows(count: 1))
        #expect(inspection.rows?["registrations"] == StoreInspection.Rows(count: 1))
        #expect(inspection.isWhole)
    }

    @Test("A node without the protocol does not change its rows")
    func withoutIt() async throws {
        try await withNode { try await register($0, try registration()) }
        try await withNode(speaking: []) { node in
            await relay.feed([post("hello")])
            try await node.wait { node.counters.count(.foreign) == 1 }
        }
        #expect(gorush.accepted.isEmpty)
        try await withNode { node in
            await relay.feed([post("hello")])
            try await node.wait { gorush.accepted.map(\.deviceToken) == [DeviceToken("token-1")] }
        }
    }
}
