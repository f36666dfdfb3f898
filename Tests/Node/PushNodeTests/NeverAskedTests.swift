import Core
import Delivery
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushClient
import RateLimits
import StatusProtocol
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode
@testable import StatusServer

@Suite("Registrations that no one asked for", .timeLimit(.minutes(5)))
struct NeverAskedTests {
    @Test(
        "make room when registration-count is reached, oldest first; those that were asked for or notified stay",
        arguments: StoreEngine.allCases)
    func makeRoom(engine: StoreEngine) async throws {
        let (fixture, location) = (try NodeFixture(), try await engine.location())
        var limits = Limits.none
        try limits.set("registration-count=4")
        let configure: @Sendable (inout ServerConfiguration) -> Void = { [limits] in
            $0.store = location
            $0.limits = limits
            $0.maintenanceInterval = .milliseconds(10)
            $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
        }
        let clients = (0..<4).map { _ in TestClient(of: fixture.identity.publicKey) }
        let (asked, notified, oldest, quiet) = (clients[0], clients[1], clients[2], clients[3])
        try await fixture.withNode(configure: configure) { node async throws in
            for client in clients { #expect(try await node.register(client) == nil) }
            #expect(try await node.query(about: asked) == 1)
            #expect(try await node.notify(notified) == nil)
            // The mark of the query is stored at the stop.
        }
        try await fixture.withNode(configure: configure) { node async throws in
            #expect(try await node.register(TestClient(of: node.server)) == nil)
            #expect(node.count(.registrationDisplaced) == 1 && node.count(.registrationLimited) == 0)
            try await eventually { try await node.scrape()[.alarms, "alarm=\"registrations_displaced\""] == 1 }
            // Its version is kept, and it may register again, in place of another one.
            #expect(try await node.register(oldest) == .versionMismatch)
            #expect(try await node.register(oldest, version: 2) == nil)
            for client in [asked, notified, oldest] { #expect(try await node.query(about: client) == 1) }
            let registrations = Registrations(node.node.store.sealer)
            #expect(try node.node.store.read(registrations.state(of: quiet.key)) == .tombstone(version: 1))
            #expect(node.count(.registrationDisplaced) == 2)
            // The alarm ends.
            try await eventually { try await node.scrape()[.alarmActive, "alarm=\"registrations_displaced\""] == 0 }
        }
    }

    @Test("Without one there is no place; a registration that can't be admitted displaces nothing", arguments: StoreEngine.allCases)
    func noRoom(engine: StoreEngine) async throws {
        let (fixture, location) = (try NodeFixture(), try await engine.location())
        var limits = Limits.none
        for text in ["registration-count=2", "new-registrations=1/d burst 3"] { try limits.set(text) }
        try await fixture.withNode(configure: { [limits] in
            $0.store = location
            $0.limits = limits
        }) { node async throws in
            let (first, second) = (TestClient(of: node.server), TestClient(of: node.server))
            for client in [first, second] { #expect(try await node.register(client) == nil) }
            #expect(try await node.notify(first) == nil)
            #expect(try await node.query(about: second) == 1)
            // The query is not stored yet, and counts.
            #expect(try await node.register(TestClient(of: node.server)) == .internalError)
            #expect(node.count(.limit(.registrationCount)) == 1 && node.count(.registrationDisplaced) == 0)
        }
        // The third of three: over the rate, a fourth displaces nothing.
        for text in ["registration-count=1", "new-registrations=1/d"] { try limits.set(text) }
        let (other, place) = (try NodeFixture(), try await engine.location())
        try await other.withNode(configure: { [limits] in
            $0.store = place
            $0.limits = limits
        }) { node async throws in
            let first = TestClient(of: node.server)
            #expect(try await node.register(first) == nil)
            #expect(try await node.register(TestClient(of: node.server)) == .internalError)
            #expect(node.count(.limit(.newRegistrations)) == 1 && node.count(.registrationDisplaced) == 0)
            #expect(try await node.query(about: first) == 1)
        }
    }

    @Test("make room when the store has the size of store-mib", arguments: StoreEngine.allCases)
    func storeSize(engine: StoreEngine) async throws {
        let (fixture, location) = (try NodeFixture(), try await engine.location())
        try await fixture.withNode(configure: { $0.store = location }) { node async throws in
            let first = TestClient(of: node.server)
            #expect(try await node.register(first) == nil)
            var limits = Limits.none
            try limits.set("store-mib=1")
            node.process.replaceLimits(limits)
            let service = try #require(node.node.services.first)
            await service.recount()
            // A new database of either engine is smaller or larger than 1 MiB.
            let isFull = node.node.store.byteCount >= 1 << 20
            #expect(service.findings.isEmpty == !isFull)
            #expect(try await node.register(TestClient(of: node.server)) == nil)
            #expect(node.count(.registrationDisplaced) == (isFull ? 1 : 0))
        }
    }

    @Test("The node's own rows of an earlier release stay, and imports and exports keep the mark", arguments: StoreEngine.allCases)
    func marks(engine: StoreEngine) async throws {
        let (folder, location, identity) = (try TemporaryFolder(), try await engine.location(), PrivateKey.generate())
        let storageKey = Sealer.storageKey(of: identity)
        func store(_ parts: [StorePart]) throws -> any Store { try location.open(in: folder.path, storageKey: storageKey, parts: parts) }
        let (old, quiet, known) = (
            TestClient(of: identity.publicKey), TestClient(of: identity.publicKey), TestClient(of: identity.publicKey)
        )
        let earlier = NodeAssembly.parts.map { part in
            part.name == StatusStorage.part.name
                ? StorePart(part.name, tables: Self.created(by: part.migrations[0]), migrations: [part.migrations[0]]) : part
        }
        let before = try store(earlier)
        let insert = Mutation(
            StatusStorage.registration,
            .insert([
                StatusStorage.keyHash, StatusStorage.installation, StatusStorage.version, StatusStorage.changedAt, StatusStorage.platform,
                StatusStorage.sealed,
            ]))
        let bytes = old.registration().encoded()
        let sealed = before.sealer.seal(bytes, in: StatusStorage.registration, boundTo: Registrations.binding(old.key, 1))
        try await before.commit(
            .change([
                insert(.bytes(old.keyHash.bytes), .bytes(old.installationID.bytes), .integer(1), .integer(1), .integer(1), sealed)
            ]))
        try before.close()

        let after = try store(NodeAssembly.parts)
        #expect(try after.read(Registrations.displaceable())?.key == nil)
        let registrations = Registrations(after.sealer)
        for (client, isNeverAsked) in [(quiet, true), (known, false)] {
            let record = RegistrationRecord(
                key: client.key, version: 1, changedAt: Timestamp(rawValue: 2), registration: client.registration().encoded(),
                isNeverAsked: isNeverAsked)
            #expect(try await after.commit(registrations.merge(record)))
        }
        var exported: [RegistrationKey: Bool] = [:]
        try registrations.forEachRecord(in: after) { record in
            exported[record.key] = record.isNeverAsked
            return true
        }
        #expect(exported == [old.key: false, quiet.key: true, known.key: false])
        #expect(try after.read(Registrations.displaceable())?.key == quiet.key)
        // A newer record of a server where someone asked for it.
        let newer = RegistrationRecord(
            key: quiet.key, version: 2, changedAt: Timestamp(rawValue: 3), registration: quiet.registration(version: 2).encoded())
        #expect(try await after.commit(registrations.merge(newer)))
        #expect(try after.read(Registrations.displaceable())?.key == nil)
        // Of the tombstones of registrations that no one asked for, only the latest are kept, also of imported ones.
        for isNeverAsked in [true, false] {
            let tombstone = RegistrationRecord(
                key: TestClient(of: identity.publicKey).key, version: 1, changedAt: Timestamp(rawValue: 4), registration: nil,
                isNeverAsked: isNeverAsked)
            #expect(try await after.commit(registrations.merge(tombstone)))
            #expect(try after.read(Registrations.neverAskedTombstoneCount()) == 1)
        }
        try after.close()
    }

    private static func created(by migration: StorePart.Migration) -> [Table] {
        migration.steps.compactMap { if case .create(let table) = $0 { table } else { nil } }
    }

    @Test("Known registrants go last; of the tombstones the latest are kept", arguments: StoreEngine.allCases)
    func order(engine: StoreEngine) async throws {
        let (folder, location, identity) = (try TemporaryFolder(), try await engine.location(), PrivateKey.generate())
        let store = try location.open(in: folder.path, storageKey: Sealer.storageKey(of: identity), parts: NodeAssembly.parts)
        let registrations = Registrations(store.sealer)
        let clients = (0..<4).map { _ in TestClient(of: identity.publicKey) }
        for (time, client) in clients.enumerated() {
            let registration = client.registration()
            try await store.commit(
                registrations.store(registration, bytes: registration.encoded(), as: client.key, at: Timestamp(rawValue: Int64(time))))
        }
        // Renewed, so it is the youngest.
        try await store.commit(
            registrations.store(
                clients[0].registration(version: 2), bytes: clients[0].registration(version: 2).encoded(), as: clients[0].key,
                at: Timestamp(rawValue: 10)))
        let spared = clients[1].keyHash
        func displace(at time: Int64) async throws -> RegistrationKey? {
            try await store.commit(
                Registrations.displaceable(isSpared: { $0 == spared }).then { found in
                    guard let found else { return .done(nil) }
                    return Registrations.displace(found, at: Timestamp(rawValue: time)).map { found.key }
                })
        }
        var displaced: [RegistrationKey?] = []
        for time in 20..<25 { displaced.append(try await displace(at: Int64(time))) }
        #expect(displaced == [clients[2].key, clients[3].key, clients[0].key, clients[1].key, nil])
        #expect(try store.read(Registrations.countedRegistrations()) == 0)
        #expect(try store.read(registrations.state(of: clients[0].key)) == .tombstone(version: 2))
        #expect(try store.read(Registrations.neverAskedTombstoneCount()) == 4)
        #expect(try await store.commit(Registrations.forgetNeverAsked(limit: 2)) == 2)
        #expect(try store.read(Registrations.neverAskedTombstoneCount()) == 2)
        #expect(try clients.map { try store.read(registrations.state(of: $0.key)) != nil } == [true, true, false, false])
        // Registered again, it is one that no one asked for, as before.
        let again = clients[0].registration(version: 3)
        try await store.commit(
            registrations.store(again, bytes: again.encoded(), as: clients[0].key, at: Timestamp(rawValue: 30)))
        #expect(try await displace(at: 31) == clients[0].key)
        try store.close()
    }

    @Test("Topics of ended registrants leave the memory of all nodes, those with another device stay", arguments: StoreEngine.allCases)
    func topics(engine: StoreEngine) async throws {
        let (folder, location, identity) = (try TemporaryFolder(), try await engine.location(), PrivateKey.generate())
        let store = try location.open(in: folder.path, storageKey: Sealer.storageKey(of: identity), parts: NodeAssembly.parts)
        let registrations = Registrations(store.sealer)
        let clients = (0..<3).map { _ in TestClient(of: identity.publicKey) }
        let tables = (0..<3).map { _ in TopicTable(servers: [identity.publicKey]) }
        func register(_ client: TestClient, _ installation: InstallationID? = nil, version: UInt64 = 1) async throws {
            var registration = client.registration(version: version)
            if let installation { registration.installationID = installation }
            let key = RegistrationKey(keyHash: client.keyHash, installationID: registration.installationID)
            try await store.commit(
                registrations.store(registration, bytes: registration.encoded(), as: key, at: Timestamp(rawValue: Int64(version))))
            for table in tables { table.insert(QueryTopics(of: client.keyHash)) }
        }
        func known() throws -> [[Bool]] {
            for table in tables { try table.load(from: store) }
            return tables.map { table in clients.map { table.contains(QueryTopics(of: $0.keyHash).deployed) } }
        }
        for client in clients { try await register(client) }
        // A second device, on the same topics.
        try await register(clients[1], InstallationID("second"))
        for client in clients { try await store.commit(Registrations.unregister(client.key, version: 2, at: Timestamp(rawValue: 2))) }
        #expect(tables.allSatisfy { $0.otherCount == 6 })
        #expect(try known() == Array(repeating: [false, true, false], count: 3))
        #expect(tables.allSatisfy { $0.otherCount == 2 })
        try await register(clients[0], version: 3)
        #expect(try known() == Array(repeating: [true, true, false], count: 3))
        try store.close()
    }

    @Test("Two concurrent registrations displace different ones, though both chose the same", arguments: StoreEngine.allCases)
    func together(engine: StoreEngine) async throws {
        let (folder, location, identity) = (try TemporaryFolder(), try await engine.location(), PrivateKey.generate())
        let store = try location.open(in: folder.path, storageKey: Sealer.storageKey(of: identity), parts: NodeAssembly.parts)
        let registrations = Registrations(store.sealer)
        let clients = (0..<20).map { _ in TestClient(of: identity.publicKey) }
        for client in clients {
            let registration = client.registration()
            try await store.commit(
                registrations.store(registration, bytes: registration.encoded(), as: client.key, at: Timestamp(rawValue: 1)))
        }
        let results = await store.commitEach(
            clients.map { _ in
                Registrations.displaceable().then { found -> StoreCommand<RegistrationKey?> in
                    guard let found else { return .done(nil) }
                    return Registrations.displace(found, at: Timestamp(rawValue: 2)).map { found.key }
                }
            })
        #expect(Set(try results.compactMap { try $0.get() }) == Set(clients.map(\.key)))
        try store.close()
    }
}

extension RunningNode {
    /// The number of devices in the answer to a query.
    fileprivate func query(about client: TestClient) async throws -> Int {
        try await withClient { try await $0.query(client.identity.publicKey, at: server, timeout: .seconds(60)).count }
    }
}
