import Core
import Delivery
import Foundation
import NodeAssembly
import NodeMetrics
import PushClient
import StatusProtocol
import StatusServer
import StatusV01Server
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

/// Requests with many devices, which are committed in parts.
@Suite(.timeLimit(.minutes(5))) struct LargeRequestTests {
    /// More than two parts.
    private static let deviceCount = 140

    private static func message(_ payload: [UInt8], to server: PublicKey) -> WakuMessage {
        let topic = StatusTopics.partitioned(server)
        return WakuMessage(payload: payload, contentTopic: ContentTopic(TopicTag(of: topic)), timestamp: .now())
    }

    private static func token(_ client: TestClient) -> DeviceToken { DeviceToken("token \(client.keyHash.bytes[0..<8])") }

    private static func registration(_ client: TestClient) -> WakuMessage {
        let registration = client.registration { $0.deviceToken = token(client) }
        return message(
            TestPayload.sealed(client.envelope(registration), signedBy: client.identity, to: client.server), to: client.server)
    }

    private static func request(_ clients: [TestClient], messageID: [UInt8]) -> WakuMessage {
        let request = PushNotificationRequest(requests: clients.map { $0.notification() }, messageID: messageID)
        let signer = PrivateKey.generate()
        let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: signer).bytes
        let server = clients[0].server
        return message(TestPayload.sealed(envelope, signedBy: signer, to: server), to: server)
    }

    private static func waiting(_ node: FedNode) throws -> [DeliveryID] {
        try node.node.store.read(DeliveryStorage.waitingDeliveries()).map(\.delivery)
    }

    @Test(arguments: StoreEngine.allCases) func smallRequestsAreCommittedBeforeTheRestOfALargeOne(engine: StoreEngine) async throws {
        let (folder, identity, location, gorush) = (
            try TemporaryFolder(), PrivateKey.generate(), try await engine.location(), ScriptedGorush()
        )
        let clients = (0..<Self.deviceCount).map { _ in TestClient(of: identity.publicKey) }
        try await withFedNode(identity, folder.path, gorush, configure: { $0.store = location }) { node, relay in
            await relay.feed(clients.map(Self.registration))
            try await node.wait { relay.published.count == clients.count }
            gorush.answer(.failed(retryAfter: nil))
            await relay.feed([Self.request(clients, messageID: [1]), Self.request([clients[139]], messageID: [2])])
            try await node.wait { node.count(.notificationQueued) == clients.count + 1 }
            let waiting = try Self.waiting(node)
            #expect(waiting.count == clients.count + 1)
            // It waits for the part that is being committed, and not for the last one.
            let small = DeliveryID(messageID: [2], key: clients[139].key)
            let place = try #require(waiting.firstIndex(of: small))
            #expect(place <= 128)
            #expect(waiting.filter { $0 != small } == clients.map { DeliveryID(messageID: [1], key: $0.key) })
            gorush.answer(.accepted)
            try await node.wait { gorush.accepted.count == clients.count + 1 && node.node.isIdle }
            #expect(Set(gorush.accepted.map(\.id)).count == clients.count + 1)
        }
    }

    @Test(arguments: StoreEngine.allCases) func theAnswerNamesEveryDeviceInOrder(engine: StoreEngine) async throws {
        let (fixture, location) = (try NodeFixture(), try await engine.location())
        let clients = (0..<70).map { _ in TestClient(of: fixture.identity.publicKey) }
        try await fixture.withNode(configure: { $0.store = location }) { node async throws in
            for client in clients { try await node.register(client, token: "token \(client.keyHash.bytes[0..<8])") }
            var entries = clients.map { $0.notification() }
            // In each of three parts one fails, and a device is named again in another part than before.
            entries[3].accessToken = AccessToken("another")
            entries.insert(TestClient(of: node.server).notification(), at: 66)
            entries += entries[10..<68] + [clients[3].notification()]
            entries[128].kind = .unknown
            var expected: [PushNotificationReport.ErrorType?] = Array(repeating: nil, count: 130)
            (expected[3], expected[66], expected[127], expected[128]) = (.wrongToken, .notRegistered, .notRegistered, .unknown)
            for _ in 0..<2 {
                let sent = entries
                let reports = try await node.withClient {
                    try await $0.notify(sent, messageID: [7], at: node.server, timeout: .seconds(60))
                }
                #expect(reports.map(\.publicKey) == entries.map(\.publicKey))
                #expect(reports.map(\.error) == expected)
                // Each is notified once, by a repetition of the request too.
                #expect(node.gorush.accepted.count == clients.count)
            }
        }
    }

    /// The files are copied after the first part of a request was written: a kill leaves the same. The next start has its notifications, and a
    /// repetition adds the others.
    @Test func aRequestIsCompletedAfterAKillBetweenTwoParts() async throws {
        let (folder, copy, identity, gorush) = (try TemporaryFolder(), try TemporaryFolder(), PrivateKey.generate(), ScriptedGorush())
        let faults = StoreFaults(in: folder.path)
        let clients = (0..<Self.deviceCount).map { _ in TestClient(of: identity.publicKey) }
        let request = Self.request(clients, messageID: [1])
        // No other commit may come between.
        let configure: (inout ServerConfiguration) -> Void = {
            ($0.awaitLimit, $0.handledInterval, $0.maintenanceInterval) = (.milliseconds(500), .seconds(3600), .seconds(3600))
        }
        try await withFedNode(identity, folder.path, gorush, configure: configure) { node, relay in
            await relay.feed(clients.map(Self.registration))
            try await node.wait { relay.published.count == clients.count && node.node.isIdle }
            gorush.answer(.failed(retryAfter: nil))
            // Else the node could not end.
            defer { faults.clear() }
            faults.add(.stall, to: .sync, of: .log)
            await relay.feed([request])
            // The answer is an error, because the sync of the first part hangs.
            try await node.wait { relay.published.count == clients.count + 1 && faults.hits > 0 }
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.contains(".sqlite") {
                try FileManager.default.copyItem(atPath: folder.path + "/" + name, toPath: copy.path + "/" + name)
            }
        }
        gorush.answer(.accepted)
        try await withFedNode(identity, copy.path, gorush) { node, relay in
            try await node.wait { gorush.accepted.count == 64 && node.node.isIdle }
            #expect(Set(gorush.accepted.map(\.deviceToken)) == Set(clients[..<64].map(Self.token)))
            await relay.feed([request])
            try await node.wait { gorush.accepted.count == clients.count && node.count(.requestAnswered) == 1 }
            #expect(Set(gorush.accepted.map(\.id)).count == clients.count)
        }
    }

    @Test(arguments: StoreEngine.allCases) func largeRequestsOfVersion01AreCommittedInParts(engine: StoreEngine) async throws {
        let (folder, identity, location, gorush) = (
            try TemporaryFolder(), PrivateKey.generate(), try await engine.location(), ScriptedGorush()
        )
        let accounts = (0..<Self.deviceCount).map { number in
            V01Account(of: identity.publicKey, devices: [V01Account.device(token: "token \(number)")])
        }
        @Sendable func request(_ accounts: [V01Account], messageID: [UInt8], ackKey: [UInt8]) -> WakuMessage {
            let request = V01.Request(requests: accounts.map { $0.entry() }, message: [1], messageID: messageID, ackKey: ackKey)
            return V01Account.message(.request, request.encoded(), to: identity.publicKey, signedBy: .generate())
        }
        let keys = (0..<2).map { _ in randomBytes(32) }
        let large = request(accounts, messageID: [1], ackKey: keys[0])
        let small = request([accounts[139]], messageID: [2], ackKey: keys[1])
        let configure: (inout ServerConfiguration) -> Void = {
            $0.store = location
            $0.statusV01 = StatusPushV01.Configuration()
        }
        try await withFedNode(identity, folder.path, gorush, configure: configure) { node, relay in
            await relay.feed(accounts.map { $0.message($0.register(version: 1)) })
            try await node.wait { relay.published.count == accounts.count }
            gorush.answer(.failed(retryAfter: nil))
            await relay.feed([large, small])
            try await node.wait { node.count(.notificationQueued) == accounts.count + 1 }
            let waiting = try Self.waiting(node)
            @Sendable func delivery(_ messageID: [UInt8], _ account: V01Account) -> DeliveryID {
                DeliveryID(messageID: messageID, registrant: account.keyHash, installationID: account.devices[0].installationID)
            }
            let ofSmall = delivery([2], accounts[139])
            let place = try #require(waiting.firstIndex(of: ofSmall))
            #expect(place <= 128)
            #expect(waiting.filter { $0 != ofSmall } == accounts.map { delivery([1], $0) })
        }
    }

    @Test(arguments: StoreEngine.allCases) func fewAccountsOfVersion01WithManyDevicesTakeTurns(engine: StoreEngine) async throws {
        let (folder, identity, location, gorush) = (
            try TemporaryFolder(), PrivateKey.generate(), try await engine.location(), ScriptedGorush()
        )
        let accounts = (0..<4).map { number in
            V01Account(
                of: identity.publicKey,
                devices: (0..<(number == 3 ? 1 : 60)).map { V01Account.device("device \($0)", token: "token \(number) \($0)") })
        }
        func request(_ accounts: some Sequence<V01Account>, messageID: [UInt8]) -> WakuMessage {
            let request = V01.Request(requests: accounts.map { $0.entry() }, message: [1], messageID: messageID, ackKey: randomBytes(32))
            return V01Account.message(.request, request.encoded(), to: identity.publicKey, signedBy: .generate())
        }
        let requests = [request(accounts.prefix(3), messageID: [1]), request([accounts[3]], messageID: [2])]
        let small = DeliveryID(
            messageID: [2], registrant: accounts[3].keyHash, installationID: accounts[3].devices[0].installationID)
        let configure: (inout ServerConfiguration) -> Void = {
            $0.store = location
            $0.statusV01 = StatusPushV01.Configuration()
        }
        try await withFedNode(identity, folder.path, gorush, configure: configure) { node, relay in
            await relay.feed(accounts.map { $0.message($0.register(version: 1)) })
            try await node.wait { relay.published.count == accounts.count }
            gorush.answer(.failed(retryAfter: nil))
            await relay.feed(requests)
            try await node.wait { node.count(.notificationQueued) == 181 }
            let place = try #require(try Self.waiting(node).firstIndex(of: small))
            #expect(place <= 120)
            gorush.answer(.accepted)
            // Each is notified once, and each request acknowledged once.
            try await node.wait { relay.published.count == accounts.count + 2 && gorush.accepted.count >= 181 && node.node.isIdle }
            #expect(gorush.accepted.count == 181 && Set(gorush.accepted.map(\.id)).count == 181)
        }
    }

    @Test func aRequestThatWasAnsweredWithAnErrorIsNotContinued() async throws {
        let (folder, identity, gorush) = (try TemporaryFolder(), PrivateKey.generate(), ScriptedGorush())
        let faults = StoreFaults(in: folder.path)
        let clients = (0..<Self.deviceCount).map { _ in TestClient(of: identity.publicKey) }
        let configure: (inout ServerConfiguration) -> Void = { $0.awaitLimit = .milliseconds(500) }
        try await withFedNode(identity, folder.path, gorush, configure: configure) { node, relay in
            await relay.feed(clients.map(Self.registration))
            try await node.wait { relay.published.count == clients.count }
            // Else the node could not end.
            defer { faults.clear() }
            faults.add(.stall, to: .sync, of: .log)
            await relay.feed([Self.request(clients, messageID: [1])])
            try await node.wait { relay.published.count == clients.count + 1 }
            faults.clear()
            try await node.wait { node.count(.shedRequest) == 1 && node.node.isIdle }
            // The part that was being committed.
            #expect(node.count(.notificationQueued) == 64)
            // The sender repeats it.
            await relay.feed([Self.request(clients, messageID: [1])])
            try await node.wait { gorush.accepted.count == clients.count && relay.published.count == clients.count + 2 }
            #expect(Set(gorush.accepted.map(\.id)).count == clients.count)
        }
    }
}
