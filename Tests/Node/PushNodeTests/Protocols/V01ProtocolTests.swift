import NodeAPI
import CurlClient
import Delivery
import NodeAssembly
import NodeMetrics
import PushNode
import Core
import StatusProtocol
import RateLimits
import StatusServer
import StatusV01Server
import Storage
import StoreSQLite
import TestSupport
import Testing
import Waku
import WakuCrypto

/// Version 0.1 on a node, beside the deployed protocol.
@Suite("Version 0.1 on the node")
struct V01ProtocolTests {
    private let folder: TemporaryFolder
    private let identity = PrivateKey.generate()
    private let gorush = ScriptedGorush()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func withNode(
        isOn: Bool = true, configure: @escaping (inout ServerConfiguration) -> Void = { _ in },
        _ body: @escaping @Sendable (FedNode, FeedRelay) async throws -> Void
    ) async throws {
        try await withFedNode(identity, folder.path, gorush) {
            if isOn { $0.statusV01 = StatusPushV01.Configuration() }
            configure(&$0)
        } _: {
            try await body($0, $1)
        }
    }

    private func account(_ devices: V01.Device...) -> V01Account {
        V01Account(of: identity.publicKey, devices: devices.isEmpty ? [V01Account.device()] : devices)
    }

    private func request(
        _ entries: [V01.PushNotification], ackKey: [UInt8], messageID: String = "id", message: [UInt8] = [1]
    ) -> WakuMessage {
        let request = V01.Request(requests: entries, message: message, messageID: Array(messageID.utf8), ackKey: ackKey)
        return V01Account.message(.request, request.encoded(), to: identity.publicKey, signedBy: .generate())
    }

    /// Feeds a message, and returns the answer.
    private func ask(
        _ message: WakuMessage, _ node: FedNode, _ relay: FeedRelay, by key: PrivateKey? = nil, ackKey: [UInt8] = []
    ) async throws -> V01.Envelope {
        let count = relay.published.count
        await relay.feed([message])
        try await node.wait { relay.published.count > count }
        let opened = try EnvelopeSealing.open(
            relay.published[count], identity: key, topicKeys: SymmetricKey(bytes: ackKey).map { [$0] } ?? [])
        return try V01.Envelope(parsing: opened.data, wakuSigner: opened.signer)
    }

    private func register(_ account: V01Account, version: UInt64 = 1, _ node: FedNode, _ relay: FeedRelay) async throws {
        let answer = try await ask(account.message(account.register(version: version)), node, relay, by: account.identity)
        #expect(answer.type == .registrationResponse && answer.sender == identity.publicKey)
        #expect(try V01.RegistrationResponse(parsing: answer.payload).error == nil)
    }

    private func acknowledgement(
        of message: WakuMessage, under ackKey: [UInt8], _ node: FedNode, _ relay: FeedRelay
    ) async throws -> V01.Acknowledgement.ErrorType? {
        let answer = try await ask(message, node, relay, ackKey: ackKey)
        #expect(answer.type == .acknowledgement && answer.sender == identity.publicKey)
        let acknowledgement = try V01.Acknowledgement(parsing: answer.payload)
        #expect(acknowledgement.id == ackKey)
        return acknowledgement.error
    }

    @Test("A record is registered, found, and notified as one notification for each platform")
    func wholeFlow() async throws {
        let account = account(V01Account.device("a"), V01Account.device("b", token: "b"), V01Account.device("c", token: "c", tokenType: 2))
        try await withNode { node, relay in
            try await register(account, node, relay)
            let asker = PrivateKey.generate()
            let query = V01Account.message(
                .query, V01.Query([account.keyHash]).encoded(), to: identity.publicKey, signedBy: asker)
            let found = try V01.QueryResponse(parsing: try await ask(query, node, relay, by: asker).payload)
            #expect(Set(found.info.map(\.installationID.string)) == ["a", "b", "c"])
            let ackKey = randomBytes(32)
            #expect(try await acknowledgement(of: request([account.entry()], ackKey: ackKey), under: ackKey, node, relay) == nil)
            let posted = gorush.accepted
            #expect(posted.count == 3)
            for profile in PayloadProfile.allCases where profile != .private {
                let json = String(decoding: profile.encode(posted), as: UTF8.self)
                #expect(json.components("\"notif_id\"") == 2)
                #expect(json.contains(#""tokens":["a-device-token","b"]"#) && json.contains(#""installation_ids":["a","b"]"#))
                #expect(!json.contains("\"topic\""))
            }
            #expect(node.count(.v01Stored) == 1 && node.count(.v01QueryAnswered) == 1 && node.count(.v01RequestTaken) == 1)
        }
    }

    @Test("The same record with the same token is registered with two identities, and served by each")
    func twoIdentities() async throws {
        let other = PrivateKey.generate()
        let first = account(V01Account.device("a"))
        let second = V01Account(
            of: other.publicKey, identity: first.identity, accessToken: first.accessToken, devices: [V01Account.device("a", token: "b")])
        try await withNode(configure: { $0.otherIdentities = [other] }) { node, relay in
            for account in [first, second] {
                let answer = try await ask(account.message(account.register(version: 1)), node, relay, by: account.identity)
                #expect(answer.sender == account.server)
                #expect(try V01.RegistrationResponse(parsing: answer.payload).error == nil)
                let asker = PrivateKey.generate()
                let query = V01Account.message(
                    .query, V01.Query([account.keyHash]).encoded(), to: account.server, signedBy: asker)
                let found = try await ask(query, node, relay, by: asker)
                #expect(found.sender == account.server)
                #expect(try V01.QueryResponse(parsing: found.payload).info.map(\.publicKey) == [account.keyHash.bytes])
                let ackKey = randomBytes(32)
                let request = V01.Request(requests: [account.entry()], message: [1], messageID: Array("id".utf8), ackKey: ackKey)
                let message = V01Account.message(.request, request.encoded(), to: account.server, signedBy: .generate())
                let acknowledgement = try await ask(message, node, relay, ackKey: ackKey)
                #expect(acknowledgement.sender == account.server)
                #expect(try V01.Acknowledgement(parsing: acknowledgement.payload).error == nil)
            }
            #expect(gorush.accepted.map(\.deviceToken.revealed) == ["a-device-token", "b"])
        }
        // The second one is left out: the first still has its record, and unregisters without it.
        try await withNode { node, relay in
            let answer = try await ask(first.message(first.register(version: 1)), node, relay, by: first.identity)
            #expect(try V01.RegistrationResponse(parsing: answer.payload).error == nil)
            #expect(node.count(.v01Repeated) == 1)
        }
    }

    @Test("The topic for APNs is the operator's")
    func apnsTopic() async throws {
        let account = account(V01Account.device("a"), V01Account.device("b", tokenType: 2))
        try await withNode {
            $0.statusV01?.apnsTopic = "im.status"
        } _: { node, relay in
            try await register(account, node, relay)
            let ackKey = randomBytes(32)
            _ = try await acknowledgement(of: request([account.entry()], ackKey: ackKey), under: ackKey, node, relay)
            #expect(gorush.accepted.map(\.apnTopic) == ["im.status", ""])
        }
    }

    @Test("The group of a request goes out in one post, however small posts are at first")
    func wholeGroup() async throws {
        var account = account()
        account.devices = (0..<64).map { V01Account.device("device-\($0)", token: "token-\($0)") }
        try await withNode { [account] node, relay in
            try await register(account, node, relay)
            let ackKey = randomBytes(32)
            #expect(try await acknowledgement(of: request([account.entry()], ackKey: ackKey), under: ackKey, node, relay) == nil)
            #expect(gorush.attempts == 1)
            #expect(gorush.accepted.count == 64)
        }
    }

    @Test("The same request gets the same acknowledgement, also when its token is good by then, and after a restart")
    func repeatedRequest() async throws {
        let (account, ackKey) = (account(), randomBytes(32))
        let message = request([account.entry()], ackKey: ackKey)
        @Sendable func again(_ ackKey: [UInt8], _ account: V01Account) -> WakuMessage { request([account.entry()], ackKey: ackKey) }
        try await withNode { node, relay async throws in
            #expect(try await acknowledgement(of: message, under: ackKey, node, relay) == .badToken)
            try await register(account, node, relay)
            #expect(try await acknowledgement(of: again(ackKey, account), under: ackKey, node, relay) == .badToken)
        }
        try await withNode { node, relay async throws in
            #expect(try await acknowledgement(of: again(ackKey, account), under: ackKey, node, relay) == .badToken)
            let other = randomBytes(32)
            #expect(try await acknowledgement(of: again(other, account), under: other, node, relay) == nil)
            #expect(gorush.accepted.count == 1)
        }
    }

    @Test("Waiting notifications stay while the protocol is off, and are posted once it is on again")
    func waitsWhileOff() async throws {
        let (account, ackKey) = (account(), randomBytes(32))
        gorush.answer(.failed(retryAfter: nil))
        try await withNode {
            $0.awaitLimit = .milliseconds(50)
        } _: { node, relay in
            try await register(account, node, relay)
            let failed = try await acknowledgement(of: request([account.entry()], ackKey: ackKey), under: ackKey, node, relay)
            #expect(failed == .internalError)
        }
        gorush.answer(.accepted)
        try await withNode(isOn: false) { node, _ in
            #expect(node.node.findings.first { $0.check == "outbox" }?.text.hasPrefix("1 notifications wait") == true)
        }
        #expect(gorush.accepted.isEmpty)
        try await withNode { node, _ in
            try await node.wait { node.count(.notificationAccepted) == 1 }
            #expect(gorush.accepted.count == 1)
        }
    }

    @Test("A notification that gorush does not accept in time is answered INTERNAL_ERROR, and success once it was delivered")
    func gorushFails() async throws {
        let (account, ackKey) = (account(), randomBytes(32))
        gorush.answer(.failed(retryAfter: nil))
        try await withNode {
            $0.awaitLimit = .milliseconds(50)
        } _: { node, relay in
            try await register(account, node, relay)
            let failed = try await acknowledgement(of: request([account.entry()], ackKey: ackKey), under: ackKey, node, relay)
            #expect(failed == .internalError)
            gorush.answer(.accepted)
            try await node.wait { !gorush.accepted.isEmpty }
            try await node.wait { node.count(.notificationAccepted) == 1 }
            #expect(try await acknowledgement(of: request([account.entry()], ackKey: ackKey), under: ackKey, node, relay) == nil)
            #expect(gorush.accepted.count == 1)
        }
    }

    @Test("A dead token takes its device out of the record, and leaves the others")
    func deadToken() async throws {
        let account = account(V01Account.device("a"), V01Account.device("b", token: "b", tokenType: 2))
        gorush.answer(.accepted, verdict: .dead)
        try await withNode { node, relay in
            try await register(account, version: 7, node, relay)
            let ackKey = randomBytes(32)
            // gorush accepted the notification, and version 0.1 has no answer for what it says about tokens.
            #expect(try await acknowledgement(of: request([account.entry()], ackKey: ackKey), under: ackKey, node, relay) == nil)
            try await node.wait { node.count(.tokenRemoved) > 0 }
            try await register(account, version: 8, node, relay)
        }
    }

    @Test("A notification whose token is dead, and whose device registers a new one at that moment, is posted to the new one")
    func registeredWhilePosting() async throws {
        let former = account(V01Account.device("a", token: "former"))
        let present = V01Account(
            of: identity.publicKey, identity: former.identity, accessToken: former.accessToken,
            devices: [V01Account.device("a", token: "present")])
        try await withNode { [gorush] node, relay in
            try await register(former, version: 7, node, relay)
            gorush.whilePosting { notifications in
                let isFormer = notifications.contains { $0.deviceToken.revealed == "former" }
                if isFormer {
                    await relay.feed([present.message(present.register(version: 8))])
                    try? await node.wait { node.count(.v01Stored) == 2 }
                }
                gorush.answer(.accepted, verdict: isFormer ? .dead : nil)
            }
            defer { gorush.whilePosting { _ in } }
            await relay.feed([request([former.entry()], ackKey: randomBytes(32))])
            try await node.wait { node.count(.notificationAccepted) == 1 }
            #expect(gorush.accepted.map(\.deviceToken.revealed) == ["former", "present"])
            #expect(node.count(.tokenRemoved) == 0)
        }
    }

    @Test("Messages of one protocol are not accepted on the topics of the other")
    func topics() async throws {
        let (account, client) = (account(), TestClient(of: identity.publicKey))
        let (own, personal) = (V01.serverTopic(identity.publicKey), StatusTopics.personal(identity.publicKey))
        var moved = account.message(account.register(version: 1))
        moved.contentTopic = ContentTopic(TopicTag(of: personal))
        let deployed = WakuMessage(
            payload: TestPayload.sealed(client.envelope(client.registration()), signedBy: client.identity, to: identity.publicKey),
            contentTopic: ContentTopic(TopicTag(of: own)), timestamp: .now())
        try await withNode { [moved] node, relay in
            await relay.feed([moved, deployed])
            try await node.wait { node.count(.droppedOtherKind) == 2 }
            #expect(relay.published.isEmpty)
        }
    }

    @Test("One identity uses both protocols, and neither touches the other")
    func bothProtocols() async throws {
        let account = account()
        let client = TestClient(of: identity.publicKey, identity: account.identity)
        let registration = WakuMessage(
            payload: TestPayload.sealed(
                client.envelope(client.registration(version: 3)), signedBy: client.identity, to: identity.publicKey),
            contentTopic: ContentTopic(TopicTag(of: StatusTopics.personal(identity.publicKey))), timestamp: .now())
        try await withNode { node, relay in
            try await register(account, version: 1, node, relay)
            await relay.feed([registration])
            try await node.wait { relay.published.count == 2 }
            let end = account.message(account.unregister(version: 2))
            let answer = try await ask(end, node, relay, by: account.identity)
            #expect(try V01.RegistrationResponse(parsing: answer.payload).error == nil)
        }
        let store = try NodeAssembly.existingStore(in: folder.path, of: identity)
        #expect(try store.read(Records(store.sealer).preferences(of: account.keyHash)) == nil)
        #expect(try store.read(StatusServer.Registrations.summaries(limit: 2)).count == 1)
    }

    @Test("Switched off, it handles no messages, and its rows stay")
    func switchedOff() async throws {
        let account = account()
        try await withNode { node, relay in try await register(account, node, relay) }
        try await withNode(isOn: false) { node, relay in
            await relay.feed([account.message(account.register(version: 2))])
            try await node.wait { node.count(.foreign) == 1 }
        }
        try await withNode { node, relay in try await register(account, version: 2, node, relay) }
    }

    @Test("Queues, devices and messages have the protocol's label")
    func labels() async throws {
        let account = account(V01Account.device("a"), V01Account.device("b", tokenType: 2))
        let client = CurlClient()
        try await withNode {
            $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
        } _: { node, relay in
            try await register(account, node, relay)
            try await node.wait { node.node.httpPort != nil }
            let url = "http://127.0.0.1:\(node.node.httpPort ?? 0)/metrics"
            let response = try await client.send(HTTPRequest(method: "GET", url: url, headers: [], timeout: .seconds(60)))
            let text = String(decoding: response.body, as: UTF8.self)
            for label in ["status", "status-v0.1"] {
                #expect(text.contains("\nwaku_push_queue_limit{protocol=\"\(label)\",queue=\"work\"} "))
            }
            #expect(text.contains("\nwaku_push_registrations{protocol=\"status-v0.1\",platform=\"apn\",state=\"registered\"} 1.0\n"))
            #expect(text.contains("\nwaku_push_registrations{protocol=\"status\",platform=\"apn\",state=\"registered\"} 0.0\n"))
            #expect(
                text.contains(
                    "\nwaku_push_messages_handled_total{protocol=\"status-v0.1\",kind=\"registration\",outcome=\"stored\"} 1\n"))
        }
    }

    @Test("Limits refuse records and drop messages, and count for this protocol")
    func limits() async throws {
        let large = account(V01Account.device("a"), V01Account.device("b"))
        let small = account()
        try await withNode {
            $0.limits.installationsByKey = 1
            try? $0.limits.set("requests-by-sender=1/h")
        } _: { node, relay in
            let answer = try await ask(large.message(large.register(version: 1)), node, relay, by: large.identity)
            #expect(try V01.RegistrationResponse(parsing: answer.payload).error == .internalError)
            #expect(node.count(.v01OverLimit) == 1)
            try await register(small, node, relay)
            let (sender, ackKey) = (PrivateKey.generate(), randomBytes(32))
            let payload = V01.Request(requests: [small.entry()], message: [1], messageID: [1], ackKey: ackKey).encoded()
            for _ in 0..<2 {
                await relay.feed([V01Account.message(.request, payload, to: identity.publicKey, signedBy: sender)])
            }
            try await node.wait { node.count(.droppedLimited) == 1 }
        }
    }

    @Test("Devices that are no longer registered make room at once, and only once")
    func endedDevicesMakeRoom() async throws {
        let (large, others) = (account(V01Account.device("a"), V01Account.device("b")), [account(), account(), account()])
        var small = large
        small.devices.removeLast()
        try await withNode {
            $0.limits.registrationCount = 2
        } _: { [small] node, relay in
            func error(_ message: WakuMessage, by account: V01Account) async throws -> V01.RegistrationResponse.ErrorType? {
                try V01.RegistrationResponse(parsing: try await ask(message, node, relay, by: account.identity).payload).error
            }
            try await register(large, node, relay)
            #expect(node.node.findings.contains { $0.check == "registrations of status-v0.1" && $0.verdict == .warn })
            #expect(try await error(others[0].message(others[0].register(version: 1)), by: others[0]) == .internalError)
            try await register(small, version: 2, node, relay)
            try await register(others[0], node, relay)
            #expect(try await error(others[1].message(others[1].register(version: 1)), by: others[1]) == .internalError)
            for version in 3...4 as ClosedRange<UInt64> {
                #expect(try await error(small.message(small.unregister(version: version)), by: small) == nil)
            }
            try await register(others[1], node, relay)
            #expect(try await error(others[2].message(others[2].register(version: 1)), by: others[2]) == .internalError)
        }
    }

    @Test("The record in the answer to an outdated Register counts as an answer to a query")
    func outdatedRegistersDoNotAmplify() async throws {
        let account = account(V01Account.device(blocked: (0..<3_000).map { _ in randomBytes(32) }))
        try await withNode {
            try? $0.limits.set("whole-answers-by-target=1/h")
        } _: { node, relay in
            try await register(account, version: 9, node, relay)
            var answers: [V01.RegistrationResponse] = []
            for version in 1...3 as ClosedRange<UInt64> {
                let answer = try await ask(
                    account.message(account.unregister(version: version)), node, relay, by: account.identity)
                answers.append(try V01.RegistrationResponse(parsing: answer.payload))
            }
            #expect(answers.map(\.error) == [.versionMismatch, .internalError, .internalError])
            #expect(answers.map { $0.preferences?.version } == [9, nil, nil])
            #expect(node.count(.v01Outdated) == 1 && node.count(.v01OverLimit) == 2)
        }
    }

    @Test("A request for which there is no usable ack_key is carried out")
    func withoutAckKey() async throws {
        let account = account()
        try await withNode { node, relay in
            try await register(account, node, relay)
            let count = relay.published.count
            await relay.feed([request([account.entry()], ackKey: [1, 2, 3])])
            try await node.wait { node.count(.v01Unacknowledged) == 1 }
            #expect(gorush.accepted.count == 1)
            #expect(relay.published.count == count)
        }
    }
}

extension String {
    /// How often a part occurs.
    fileprivate func components(_ part: String) -> Int { ranges(of: part).count }
}
