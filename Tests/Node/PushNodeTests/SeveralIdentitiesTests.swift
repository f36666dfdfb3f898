import Cluster
import Core
import Delivery
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushClient
import StatusProtocol
import Storage
import StorePostgreSQL
import StoreSQLite
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode
@testable import StatusServer

/// A second identity is served beside the first, while clients move from one to the other.
@Suite(.timeLimit(.minutes(5)))
struct SeveralIdentitiesTests {
    private let fixture: NodeFixture
    private let other = PrivateKey.generate()

    init() throws {
        fixture = try NodeFixture()
    }

    private func client(of server: PublicKey, like client: TestClient? = nil) -> TestClient {
        TestClient(of: server, identity: client?.identity ?? .generate())
    }

    private func store(at location: StoreLocation, of identity: PrivateKey) throws -> any Store {
        try NodeAssembly.store(at: location, in: fixture.folder.path, of: identity)
    }

    private func move(_ location: StoreLocation, from old: PrivateKey, to new: PrivateKey) throws {
        let (key, move) = (Sealer.storageKey(of: old), StoreMove(from: old, to: new))
        switch location {
        case .dataFolder:
            let folder = try DataFolder(locking: fixture.folder.path)
            defer { folder.unlock() }
            try StorageKeyRotation.run(key, in: folder, parts: NodeAssembly.parts, move)
        case .postgreSQL(let address): try PostgreSQLKeyRotation.run(key, at: address, parts: NodeAssembly.parts, move)
        }
    }

    private static func names(_ node: RunningNode) async -> [String: String] {
        let protocols = await node.node.status().protocols ?? []
        return Dictionary(protocols.flatMap(\.facts).map { ($0.name, $0.value) }) { first, _ in first }
    }

    private static func fact(_ node: RunningNode, _ identity: PublicKey) async -> String? {
        await names(node)["identity \(identity.hex.prefix(12))…"]
    }

    @Test(arguments: StoreEngine.allCases)
    func aClientMovesFromOneIdentityToTheOther(engine: StoreEngine) async throws {
        let location = try await engine.location()
        let (old, new) = (fixture.identity.publicKey, other.publicKey)
        let before = client(of: old)
        let after = client(of: new, like: before)
        // A store of a node with one identity.
        try await fixture.withNode(configure: { $0.store = location }) { node async throws -> Void in
            #expect(try await node.register(before, version: 5) == nil)
            #expect(try await node.notify(before) == nil)
            #expect(await Self.fact(node, old) == nil)
        }
        // The new identity is served beside it. Registrations, versions and requests are by identity.
        try await fixture.withNode(configure: { [other] in
            $0.store = location
            $0.otherIdentities = [other]
        }) { node async throws -> Void in
            let beside = RunningNode(process: node.process, network: node.network, server: new, gorush: node.gorush)
            #expect(try await node.notify(before) == nil)
            #expect(try await beside.notify(after) == .notRegistered)
            #expect(try await beside.register(after, version: 1, token: "device-2") == nil)
            #expect(try await beside.register(after, version: 1, token: "device-3") == .versionMismatch)
            #expect(try await node.register(before, version: 5) == .versionMismatch)
            // The same message is a request to each: two servers would notify twice as well.
            let message = randomBytes(32)
            for _ in 0..<2 {
                #expect(try await node.notify(before, messageID: message) == nil)
                #expect(try await beside.notify(after, messageID: message) == nil)
            }
            let tokens = node.gorush.accepted.suffix(2).map(\.deviceToken.revealed)
            #expect(node.gorush.accepted.count == 4 && Set(tokens) == ["device", "device-2"], "\(tokens)")
            // Each identity answers for itself.
            for server in [old, new] {
                let devices = try await node.withClient { try await $0.query(before.identity.publicKey, at: server, timeout: .seconds(60)) }
                #expect(devices.map(\.installationID) == [before.installationID])
            }
            #expect(await Self.fact(node, old)?.hasSuffix(" registrations") == true)
            #expect(await Self.fact(node, new)?.hasSuffix(" registrations") == true)
        }
        // The database is moved to the new identity, and opens with it only.
        try move(location, from: fixture.identity, to: other)
        #expect(throws: StoreError.self) { try self.store(at: location, of: fixture.identity) }
        let moved = NodeFixture(fixture, identity: other)
        try await moved.withNode(configure: { [fixture] in
            $0.store = location
            $0.otherIdentities = [fixture.identity]
        }) { node async throws -> Void in
            let beside = RunningNode(process: node.process, network: node.network, server: old, gorush: node.gorush)
            #expect(try await node.notify(after) == nil)
            #expect(try await beside.notify(before) == nil)
            #expect(
                try await beside.withClient(before.identity) {
                    try await $0.unregister(before.installationID, version: 6, with: old, timeout: .seconds(60))
                } == nil)
            #expect(try await beside.notify(before) == .notRegistered)
            #expect(try await node.notify(after) == nil)
        }
        // The old one is dropped. Its rows stay, and are not served.
        try await moved.withNode(configure: { $0.store = location }) { node async throws -> Void in
            #expect(try await node.notify(after) == nil)
            #expect(await Self.fact(node, old) == "0 registrations, not served")
        }
    }

    @Test func rowsKeepTheirIdentityOnTheWayToPostgreSQLAndBack() async throws {
        let target = try await StoreEngine.postgreSQL.location()
        let (old, new) = (fixture.identity.publicKey, other.publicKey)
        let before = client(of: old)
        let after = client(of: new, like: before)
        try await fixture.withNode(configure: { [other] in $0.otherIdentities = [other] }) { node async throws -> Void in
            #expect(try await node.register(before) == nil)
            let beside = RunningNode(process: node.process, network: node.network, server: new, gorush: node.gorush)
            #expect(try await beside.register(after, token: "device-2") == nil)
        }
        try move(.dataFolder, from: fixture.identity, to: other)
        let key = Sealer.storageKey(of: other)
        for (from, to) in [(StoreLocation.dataFolder, target), (target, StoreLocation.dataFolder)] {
            let source = try from.openForTransfer(in: fixture.folder.path, storageKey: key, parts: NodeAssembly.parts)
            let copy = try to.openForTransfer(in: fixture.folder.path, storageKey: key, parts: NodeAssembly.parts)
            let hash = source.sealer.lookUpHash(of: [1, 2, 3], in: "table")
            _ = try await StoreTransfer(from: source, to: copy, named: "the other").run()
            try source.close()
            try copy.close()
            let moved = try store(at: to, of: other)
            #expect(moved.sealer.lookUpHash(of: [1, 2, 3], in: "table") == hash)
            #expect(try moved.read(StoreIdentities.all()) == [old, new])
            let registrations = Registrations(moved.sealer)
            let found = try moved.read(registrations.registrations(of: [before.keyHash]))
            #expect(
                Dictionary(uniqueKeysWithValues: found.map { ($0.key.server, $0.registration.deviceToken.revealed) })
                    == [nil: "device", ServerMark(of: new): "device-2"])
            try moved.close()
        }
    }

    @Test func releasesWithOneIdentityRefuseTheDatabase() async throws {
        let store = try store(at: .dataFolder, of: fixture.identity)
        let key = Sealer.storageKey(of: fixture.identity)
        /// As those releases check the key.
        func opens() throws -> Bool {
            let check = try #require(try store.read(Properties.property(Sealer.checkProperty)))
            return (try? AESGCM.open(check, key: key, layout: .nonceFirst)) != nil
        }
        let before = try opens()
        try await store.commit(StoreIdentities.add([fixture.identity.publicKey, other.publicKey], by: store.sealer))
        let after = try opens()
        #expect(before && !after)
        try await store.commit(StoreIdentities.add([other.publicKey, fixture.identity.publicKey], by: store.sealer))
        #expect(try store.read(StoreIdentities.all()) == [fixture.identity.publicKey, other.publicKey])
        try store.close()
        try self.store(at: .dataFolder, of: fixture.identity).close()
    }

    @Test func threeNodesServeBothIdentities() async throws {
        let cluster = try await ClusterFixture()
        let (old, new) = (cluster.identity.publicKey, other.publicKey)
        let before = client(of: old)
        let after = client(of: new, like: before)
        try await cluster.withNodes(["a", "b", "c"], configure: { [other] in $0.otherIdentities = [other] }) { members in
            try await members.waitUntilShared()
            await members.feed(cluster.registration(before))
            await members.feed(
                EnvelopeSealing.seal(
                    after.envelope(after.registration { $0.deviceToken = DeviceToken("new-token") }), to: .personal(new),
                    wakuSigner: after.identity, at: .now()))
            try await members.wait { $0.count(.registrationStored) == 2 }
            await members.feed(cluster.query(before))
            try await members.wait { $0.count(.queryAnswered) == 1 }
            await members.feed(cluster.request(before, id: "message"))
            try await members.wait { _ in cluster.gorush.accepted.count == 1 }
            let signer = PrivateKey.generate()
            let request = PushNotificationRequest(requests: [after.notification()], messageID: Array("message".utf8))
            let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: signer).bytes
            await members.feed(EnvelopeSealing.seal(envelope, to: .partitioned(new), wakuSigner: signer, at: .now()))
            try await members.wait { _ in cluster.gorush.accepted.count == 2 }
            #expect(Set(cluster.gorush.accepted.map(\.deviceToken.revealed)) == ["a-device-token", "new-token"])
            // One reply for each registration, two for the query, one for each request.
            try await members.wait { $0.published.count == 6 }
            #expect(members.allSatisfy { $0.fed.node.clusterNode?.conflicts == [] })
        }
    }
}
