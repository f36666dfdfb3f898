import NodeAPI
@testable import Cluster
import Delivery
import Logging
import NodeAssembly
import NodeMetrics
import Core
import ServiceLifecycle
import StatusProtocol
import StatusServer
import StorePostgreSQL
import TestSupport
import Waku
import WakuCrypto

@testable import PushNode

/// Several nodes of one identity on a database of their own, each with a relay to which the test feeds messages, and one gorush for all.
struct ClusterFixture {
    let identity = PrivateKey.generate()
    let gorush = ScriptedGorush()
    let address: PostgreSQLAddress

    init() async throws {
        self.init(address: try PostgreSQLAddress(try await PostgreSQLServer.shared().makeDatabase()))
    }

    init(address: PostgreSQLAddress) {
        self.address = address
    }

    struct Member: Sendable {
        let fed: FedNode
        let relay: FeedRelay
        let services: ServiceGroup
    }

    /// Runs nodes while `body` runs, and stops those that still run.
    func withNodes(
        _ names: [String], configure: (inout ServerConfiguration) -> Void = { _ in },
        log: any LogHandler = SwiftLogNoOpLogHandler(),
        now: @escaping @Sendable (_ name: String) -> Timestamp = { _ in .now() },
        _ body: @escaping @Sendable ([Member]) async throws -> Void
    ) async throws {
        let logger = Logger(label: "test") { _ in log }
        var members: [Member] = []
        var folders: [TemporaryFolder] = []
        for name in names {
            let (relay, folder) = (FeedRelay(), try TemporaryFolder())
            folders.append(folder)
            var configuration = ServerConfiguration(identity: identity, dataPath: folder.path)
            configuration.awaitLimit = .seconds(60)
            configuration.replyDelay = .zero
            configuration.deriveAheadLimit = nil
            configuration.store = .postgreSQL(address)
            var cluster = ClusterNode.Configuration(name: name)
            // On a busy machine a node may be slow for long.
            cluster.times.lease = .seconds(60)
            configuration.cluster = cluster
            configure(&configuration)
            let node = FedNode(node: try Server(configuration, gorush: gorush, logger: logger, now: { now(name) }) { _ in relay }.node)
            members.append(Member(fed: node, relay: relay, services: ServiceGroup(services: [node.node], logger: logger)))
        }
        try await withThrowingTaskGroup(of: Void.self) { [members] group in
            for member in members { group.addTask { try await member.services.run() } }
            do {
                for member in members { try await member.fed.wait { member.relay.state == .attached } }
                try await body(members)
            } catch {
                for member in members { await member.services.triggerGracefulShutdown() }
                throw error
            }
            for member in members { await member.services.triggerGracefulShutdown() }
            try await group.waitForAll()
        }
        withExtendedLifetime(folders) {}
    }

    // MARK: Messages

    /// - Parameter contacts: entries of 64 bytes. 13,000 and more make several segments.
    func registration(_ client: TestClient, version: UInt64 = 1, contacts: Int = 0) -> [WakuMessage] {
        let registration = client.registration(version: version) { registration in
            if contacts > 0 { registration.allowedKeyList = Array(repeating: randomBytes(64), count: contacts) }
        }
        return EnvelopeSealing.seal(
            client.envelope(registration), to: .personal(identity.publicKey), wakuSigner: client.identity, at: .now())
    }

    func query(_ client: TestClient) -> [WakuMessage] {
        let signer = PrivateKey.generate()
        let envelope = MetadataEnvelope.encode(
            .query, payload: PushNotificationQuery(publicKeys: [client.keyHash]).encoded(), signedBy: signer
        ).bytes
        return EnvelopeSealing.seal(envelope, to: .topic(StatusTopics.query(client.keyHash)), wakuSigner: signer, at: .now())
    }

    func request(_ clients: TestClient..., id: String) -> [WakuMessage] { request(clients, id: id) }

    func request(_ clients: [TestClient], id: String) -> [WakuMessage] {
        let signer = PrivateKey.generate()
        let request = PushNotificationRequest(requests: clients.map { $0.notification() }, messageID: Array(id.utf8))
        let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: signer).bytes
        return EnvelopeSealing.seal(envelope, to: .personal(identity.publicKey), wakuSigner: signer, at: .now())
    }
}

extension [ClusterFixture.Member] {
    func feed(_ messages: [WakuMessage]) async {
        for member in self { await member.relay.feed(messages) }
    }

    /// At all nodes together.
    func count(_ counter: Counter) -> Int { reduce(0) { $0 + $1.fed.count(counter) } }

    var published: [WakuMessage] { flatMap(\.relay.published) }

    func wait(until condition: @Sendable ([ClusterFixture.Member]) -> Bool) async throws {
        try await self[0].fed.wait { condition(self) }
    }

    /// Returns once each node has its part of the partitions.
    func waitUntilShared() async throws {
        try await wait { members in
            let shares = members.map { $0.fed.node.cluster.share }
            // One more partition is for maintenance.
            return shares.reduce(0, +) == 256 && shares.allSatisfy { $0 >= 256 / members.count - 1 }
        }
    }
}

extension NodeService {
    /// This node as one of several.
    var clusterNode: ClusterNode? { cluster as? ClusterNode }
}
