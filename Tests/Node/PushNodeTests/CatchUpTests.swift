import Foundation
import Delivery
import LoopbackRelay
import NodeAssembly
import NodeMetrics
import NwakuRelay
import StatusServer
import Storage
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

/// A push node with a Waku node that loses messages in every possible way, over real sockets. Messages in its store are found, and handled once.
@Suite("Messages that polling missed are found in the store and handled once", .timeLimit(.minutes(5)))
struct CatchUpTests {
    let fixture: NodeFixture
    let bob: TestClient
    let sender = PrivateKey.generate()
    var server: PublicKey { fixture.identity.publicKey }

    init() throws {
        fixture = try NodeFixture(network: LoopbackNetwork(cacheCapacity: 50))
        bob = TestClient(of: fixture.identity.publicKey)
    }

    private func publish(_ envelope: [UInt8], from signer: PrivateKey) {
        for message in EnvelopeSealing.seal(envelope, to: .partitioned(server), wakuSigner: signer, at: .now()) {
            fixture.network.publish(message, on: .statusDefault)
        }
    }

    private func publishRegistration(of client: TestClient, version: UInt64 = 1) {
        publish(client.envelope(client.registration(version: version)), from: client.identity)
    }

    private func requests(_ count: Int) -> [WakuMessage] {
        (0..<count).flatMap { _ in
            let request = PushNotificationRequest(requests: [bob.notification()], messageID: randomBytes(32))
            let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: sender).bytes
            return EnvelopeSealing.seal(envelope, to: .partitioned(server), wakuSigner: sender, at: .now())
        }
    }

    /// Foreign messages with timestamps in the future: a full cache drops all others first.
    private func foreign(_ count: Int) -> [WakuMessage] {
        (0..<count).map { _ in
            WakuMessage(payload: randomBytes(20), contentTopic: ContentTopic(TopicTag(rawValue: 99)), timestamp: .now() + .seconds(86_400))
        }
    }

    /// Publishes at once messages that were prepared before.
    private func publish(_ messages: [WakuMessage]) {
        for message in messages { fixture.network.publish(message, on: .statusDefault) }
    }

    /// Each message after a copy of it with this version.
    private func withCopies(_ messages: [WakuMessage], version: UInt32) -> [WakuMessage] {
        messages.flatMap { message in
            var copy = message
            copy.version = version
            return [copy, message]
        }
    }

    private func expectEachOnce(_ count: Int) {
        #expect(fixture.gorush.accepted.count == count)
        #expect(Set(fixture.gorush.accepted.map(\.id)).count == count)
    }

    @Test("A flushed cache, a node that restarts without memory, a failing store")
    func faults() async throws {
        try await ServedNetwork.run(fixture.network) { served in
            let port = await served.port
            try await fixture.withNode(makeRelay: { needs, _ in try served.relay(port: port, needs) }) { [self] node async throws in
                try await node.wait { served.isAttached }
                publishRegistration(of: bob)
                try await node.wait { node.count(.registrationStored) == 1 }

                // Between two polls, or soon before one: most of it never comes by polling.
                publish(requests(15) + foreign(100))
                try await node.wait { node.gorush.accepted.count == 15 }

                await served.stop()
                publish(requests(10))
                publishRegistration(of: TestClient(of: server))
                try await served.start()
                try await node.wait { node.gorush.accepted.count == 25 && node.count(.registrationStored) == 2 }
                // Messages are counted after they were delivered.
                try await node.wait { node.count(.gapFound) > 0 && node.count(.messageRecovered) > 0 }

                for status in [412, 429, 503] {
                    fixture.network.faults.storeStatus = status
                    let before = node.gorush.accepted.count
                    let gapCount = node.count(.gapFound)
                    await served.stop()
                    publish(requests(3))
                    try await served.start()
                    // The gap stays until the store answers again, however long that takes.
                    try await node.wait { node.count(.gapFound) > gapCount }
                    #expect(node.gorush.accepted.count == before)
                    fixture.network.faults.storeStatus = nil
                    fixture.network.faults.storeDelay = .milliseconds(50)
                    try await node.wait { node.gorush.accepted.count == before + 3 }
                    fixture.network.faults.storeDelay = .zero
                }
                expectEachOnce(34)
            }
        }
    }

    /// Relays and stores keep one message for each hash, which does not cover the version.
    @Test("A copy with another version that arrives first, live or at the store, does not suppress the message")
    func copiesWithAnotherVersion() async throws {
        try await ServedNetwork.run(fixture.network) { served in
            let port = await served.port
            try await fixture.withNode(makeRelay: { needs, _ in try served.relay(port: port, needs) }) { [self] node async throws in
                try await node.wait { served.isAttached }
                publishRegistration(of: bob)
                try await node.wait { node.count(.registrationStored) == 1 }
                publish(withCopies(requests(3), version: 0))
                try await node.wait { node.gorush.accepted.count == 3 }
            }
            fixture.network.restart()
            publish(withCopies(requests(3), version: 2))
            try await fixture.withNode(makeRelay: { needs, _ in try served.relay(port: port, needs) }) { [self] node async throws in
                try await node.wait { node.gorush.accepted.count == 6 }
                expectEachOnce(6)
            }
        }
    }

    @Test("After a restart missed messages are found in the store, and handled ones are not handled again")
    func daemonRestart() async throws {
        try await ServedNetwork.run(fixture.network) { served in
            let port = await served.port
            try await fixture.withNode(makeRelay: { needs, _ in try served.relay(port: port, needs) }) { [self] node async throws in
                try await node.wait { served.isAttached }
                publishRegistration(of: bob)
                try await node.wait { node.count(.registrationStored) == 1 }
                publish(requests(10))
                try await node.wait { node.gorush.accepted.count == 10 }
            }
            for life in 1...2 {
                // Nothing is kept for a poller either.
                fixture.network.restart()
                publish(requests(10))
                publishRegistration(of: bob, version: UInt64(life + 1))
                try await fixture.withNode(makeRelay: { needs, _ in try served.relay(port: port, needs) }) { [self] node async throws in
                    // The store returns all messages of the last minute in the order of time: old ones before new ones.
                    try await node.wait { node.gorush.accepted.count == 10 + 11 * life - 1 && node.count(.registrationStored) == 1 }
                    try await node.wait { node.count(.messageRecovered) > 10 }
                    // What the node fetched from the time of its downtime is no cause for an alarm.
                    #expect(node.count(.gapFound) == 0 && !node.node.base.alarms.isActive(.gap))
                    publish(requests(1))
                    try await node.wait { node.gorush.accepted.count == 10 + 11 * life }
                }
                expectEachOnce(10 + 11 * life)
            }
        }
    }

    private func registrations(_ clients: [TestClient]) -> [WakuMessage] {
        clients.flatMap { client in
            EnvelopeSealing.seal(
                client.envelope(client.registration()), to: .partitioned(server), wakuSigner: client.identity, at: .now())
        }
    }

    /// One of 5,000 clients has the node's own topic. After a restart the node drops its answers there as undecryptable: it does not store their hashes.
    private func clientOfAnotherTopic() -> TestClient {
        let client = TestClient(of: server)
        return StatusTopics.partitioned(client.identity.publicKey) == StatusTopics.partitioned(server) ? clientOfAnotherTopic() : client
    }

    private static let clientCount = 50
    private static let droppedCount = 50
    /// The clients' registrations and requests, and one more.
    private static let answeredCount = 2 * clientCount + 1
    private static let handledCount = answeredCount + droppedCount

    /// Runs a node that answers messages of all kinds.
    private func answerMany(
        _ served: ServedNetwork, port: Int, maintenanceInterval: Duration, handledInterval: Duration = .milliseconds(250),
        then body: @escaping @Sendable (RunningNode) async throws -> Void = { _ in }
    ) async throws {
        let clients = (0..<Self.clientCount).map { _ in clientOfAnotherTopic() }
        try await fixture.withNode(
            configure: { ($0.maintenanceInterval, $0.handledInterval) = (maintenanceInterval, handledInterval) },
            makeRelay: { needs, _ in try served.relay(port: port, needs) }
        ) { [self] node async throws in
            try await node.wait { served.isAttached }
            publish(registrations(clients + [bob]))
            try await node.wait { node.count(.registrationStored) == Self.clientCount + 1 }
            publish(requests(Self.clientCount))
            try await node.wait { node.count(.answerPublished) == Self.answeredCount }
            // And messages that are dropped without an answer.
            publish(
                (0..<Self.droppedCount).map { _ in
                    WakuMessage(
                        payload: randomBytes(200), contentTopic: ContentTopic(TopicTag(of: StatusTopics.partitioned(server))),
                        timestamp: .now())
                })
            try await node.wait { node.count(.droppedUndecryptable) == Self.droppedCount }
            try await body(node)
        }
    }

    @Test("A clean restart does not repeat answers of the last minute")
    func cleanRestart() async throws {
        try await ServedNetwork.run(fixture.network) { served in
            let port = await served.port
            try await answerMany(served, port: port, maintenanceInterval: .seconds(3600))
            fixture.network.restart()
            publish(requests(3))
            try await fixture.withNode(makeRelay: { needs, _ in try served.relay(port: port, needs) }) { node async throws in
                try await node.wait { node.count(.answerPublished) == 3 && node.count(.duplicate) >= Self.handledCount }
                #expect(node.count(.registrationRepeated) == 0 && node.count(.droppedUndecryptable) == 0)
                #expect(node.count(.requestTaken) == 3)
            }
        }
    }

    @Test("After kill -9 only messages whose answer may have been lost are answered again", arguments: [true, false])
    func kill(wasSaved: Bool) async throws {
        let copy = try TemporaryFolder()
        try await ServedNetwork.run(fixture.network) { served in
            let port = await served.port
            try await answerMany(
                served, port: port, maintenanceInterval: .seconds(3600), handledInterval: wasSaved ? .milliseconds(50) : .seconds(3600)
            ) { [fixture] node in
                let store = node.node.store
                if wasSaved { try await node.wait { (try? store.read(NodeStorage.handledMessages()).count) ?? 0 >= Self.handledCount } }
                // The files are now as a kill would leave them.
                for name in try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path)
                where name.hasPrefix("waku-push.sqlite") {
                    try FileManager.default.copyItem(atPath: fixture.folder.path + "/" + name, toPath: copy.path + "/" + name)
                }
            }
            fixture.network.restart()
            publish(requests(3))
            try await fixture.withNode(
                configure: { $0.dataPath = copy.path }, makeRelay: { needs, _ in try served.relay(port: port, needs) }
            ) { node async throws in
                let repeated = wasSaved ? 0 : Self.answeredCount
                let duplicates = wasSaved ? Self.handledCount : 0
                try await node.wait {
                    node.count(.answerPublished) == 3 + repeated && node.count(.duplicate) >= duplicates
                }
                #expect(node.count(.registrationRepeated) == (wasSaved ? 0 : Self.clientCount + 1))
            }
        }
    }

    @Test("A new pubsub topic is not caught up, and an old one continues from its cursor")
    func topics() async throws {
        let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")
        try await ServedNetwork.run(fixture.network) { served in
            let port = await served.port
            let needs = Mutex<[RelayNeeds]>([])
            for topics in [[PubsubTopic.statusDefault], [.statusDefault, other], [other]] {
                try await fixture.withNode(
                    configure: { $0.pubsubTopics = topics },
                    makeRelay: { needed, _ in
                        needs.withLock { $0.append(needed) }
                        return try served.relay(port: port, needed)
                    }
                ) { node async throws in
                    try await node.wait { served.isAttached }
                }
            }
            let seen = needs.withLock { $0.map { Set($0.seenUntil.keys) } }
            #expect(seen == [[], [.statusDefault], [other]])
        }
    }
}
