import Core
import CurlClient
import Foundation
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushClient
import RateLimits
import StatusProtocol
import StatusServer
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import Delivery
@testable import PushNode

@Suite("Web Push, from the relay to the push service")
struct WebPushNodeTests {
    private let fixture: NodeFixture
    private let bob: TestClient
    private let receiver = WebPushReceiver()
    private let key = VAPIDKey(.generate())

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    private func endpoint(_ service: PushServiceStandIn, former: [VAPIDKey] = []) -> WebPushEndpoint {
        let configuration = WebPushClient.configuration(
            trust: .file(path: service.authority), allowed: ["127.0.0.0/8"].compactMap { AddressRange($0) })
        let client = WebPushClient(
            client: CurlClient(configuration: configuration), key: key, formerKeys: former, contact: "mailto:operator@example.org",
            timeout: .seconds(60))
        return WebPushEndpoint(client)
    }

    private func register(
        _ node: RunningNode, token: [UInt8], version: UInt64 = 1
    ) async throws -> PushNotificationRegistrationResponse.ErrorType? {
        // A subscription that names a key goes to a server with this key only.
        let vapidKey = PushSubscription(json: token)?.vapidKey.map { Base64URL.encode($0.bytes) } ?? key.publicKey
        return try await node.withClient(bob.identity) { [bob] client in
            try await client.register(
                DeviceProfile(platform: .webPush, deviceToken: DeviceToken(bytes: token)), as: bob.installationID,
                accessToken: bob.accessToken, version: version, with: node.server, vapidKey: vapidKey, timeout: .seconds(60))
        }
    }

    @Test("A notification is posted encrypted, without gorush, and a subscription that is gone is unregistered")
    func notified() async throws {
        let service = try await PushServiceStandIn()
        let subscription = try #require(receiver.subscription(service.endpoint("/a")))
        let gone = try #require(receiver.subscription(service.endpoint("/status/410")))
        try await fixture.withNode(configure: { $0.node.webPush = endpoint(service) }, endpoints: [.none]) { node async throws in
            #expect(try await register(node, token: subscription.json) == nil)
            #expect(try await node.notify(bob) == nil)
            let request = try #require(service.requests.first)
            let json = try #require(try JSONSerialization.jsonObject(with: Data(receiver.open(request.body))) as? [String: Any])
            #expect(json["v"] as? Int == 1 && json["protocol"] as? String == "status" && json["type"] as? String == "message")
            #expect(json["publicKey"] as? String == "0x" + hexString(bob.keyHash.bytes))
            #expect(json["installationIds"] as? [String] == [bob.installationID.string])
            #expect(node.count(.webPushAccepted) == 1 && node.count(.notificationAccepted) == 1)
            #expect(try await register(node, token: gone.json, version: 2) == nil)
            for _ in 0..<2 { #expect(try await node.notify(bob) == .notRegistered) }
            #expect(node.count(.tokenRemoved) == 1)
            let refusing = try #require(receiver.subscription(service.endpoint("/status/400")))
            #expect(try await register(node, token: refusing.json, version: 3) == nil)
            #expect(try await node.notify(bob) == .internalError)
            #expect(node.count(.notificationNotWebPushed) == 1 && node.count(.notificationRefused) == 0)
            let finding = try #require(node.node.findings.first { $0.check == "web push" })
            #expect(finding.text.contains(key.publicKey) && finding.text.contains("no gorush"))
        }
    }

    @Test("A notification for a subscription that is gone, and that its device replaces at that moment, is posted to the new one")
    func replacedWhilePosting() async throws {
        let service = try await PushServiceStandIn()
        let former = try #require(receiver.subscription(service.endpoint("/held/410")))
        let present = try #require(receiver.subscription(service.endpoint("/a")))
        let client = CurlClient(configuration: CurlConfiguration(trust: .file(path: service.authority)))
        try await fixture.withNode(configure: { $0.node.webPush = endpoint(service) }, endpoints: [.none]) { node async throws in
            #expect(try await register(node, token: former.json) == nil)
            async let report = node.notify(bob)
            try await eventually { !service.requests.isEmpty }
            #expect(try await register(node, token: present.json, version: 2) == nil)
            _ = try await client.send(
                HTTPRequest(method: "POST", url: service.endpoint("/release"), headers: [], body: [], timeout: .seconds(60)))
            #expect(try await report == nil)
            #expect(service.requests.map(\.path) == ["/held/410", "/release", "/a"])
            #expect(node.count(.notificationAccepted) == 1 && node.count(.tokenRemoved) == 0)
        }
    }

    @Test("A notification with a chat id that fits into no push message arrives without it")
    func longChat() async throws {
        let service = try await PushServiceStandIn()
        let subscription = try #require(receiver.subscription(service.endpoint("/a")))
        try await fixture.withNode(configure: { $0.node.webPush = endpoint(service) }, endpoints: [.none]) { node async throws in
            #expect(try await register(node, token: subscription.json) == nil)
            let entry = PushNotification(
                accessToken: bob.accessToken, chatID: [UInt8](repeating: 1, count: 2_000), publicKey: bob.keyHash.bytes,
                installationID: bob.installationID, kind: .message, author: [])
            let reports = try await node.withClient { client in
                try await client.notify([entry], messageID: [1], at: node.server, timeout: .seconds(60))
            }
            #expect(reports.map(\.error) == [nil])
            let request = try #require(service.requests.first)
            let json = try #require(try JSONSerialization.jsonObject(with: Data(receiver.open(request.body))) as? [String: Any])
            #expect(json["truncated"] as? Bool == true && json["chatId"] == nil)
            #expect(json["publicKey"] as? String == "0x" + hexString(bob.keyHash.bytes))
            #expect(node.count(.webPushRefused) == 0)
        }
    }

    @Test("A notification that expires while a push service fails is not counted among those that expired while gorush failed")
    func expired() async throws {
        let service = try await PushServiceStandIn()
        let failing = try #require(receiver.subscription(service.endpoint("/status/503")))
        try await fixture.withNode(
            configure: {
                $0.node.webPush = endpoint(service)
                $0.node.maximumRequestAge = .seconds(5)
            }, endpoints: [.none]
        ) { node async throws in
            #expect(try await register(node, token: failing.json) == nil)
            #expect(try await node.notify(bob) == .internalError)
            try await node.wait { node.count(.notificationNotWebPushed) == 1 }
            #expect(node.count(.notificationExpired) == 0)
        }
    }

    @Test("A notification for a push service that a full outbox drops is not counted among those that were dropped for gorush")
    func evicted() async throws {
        let service = try await PushServiceStandIn()
        let failing = try #require(receiver.subscription(service.endpoint("/status/503")))
        try await fixture.withNode(
            configure: {
                $0.node.webPush = endpoint(service)
                $0.outboxLimit = 1
                $0.awaitLimit = .milliseconds(100)
            }, endpoints: [.none]
        ) { node async throws in
            #expect(try await register(node, token: failing.json) == nil)
            for id in [1, 2] as [UInt8] { #expect(try await node.notify(bob, messageID: [id]) == .internalError) }
            try await node.wait { node.count(.notificationNotWebPushed) == 1 }
            #expect(node.count(.notificationEvicted) == 0)
        }
    }

    @Test("A push service that accepted a message before a restart counts as one that answers")
    func knownServiceAfterARestart() async throws {
        let service = try await PushServiceStandIn()
        let subscription = try #require(receiver.subscription(service.endpoint("/a")))
        try await fixture.withNode(configure: { $0.node.webPush = endpoint(service) }, endpoints: [.none]) { node async throws in
            #expect(try await register(node, token: subscription.json) == nil)
            #expect(try await node.notify(bob) == nil)
        }
        try await fixture.withNode(configure: { $0.node.webPush = endpoint(service) }, endpoints: [.none]) { node async throws in
            let delivery = node.node.delivery
            try await node.wait {
                let now = delivery.steadyNow
                return delivery.table.withLock {
                    $0.origins.memory.entry(of: subscription.origin)?.standing.isResponsive(at: now) == true
                }
            }
        }
    }

    @Test("After a change of the VAPID key, subscriptions for the former one are notified with it and counted")
    func formerKey() async throws {
        let service = try await PushServiceStandIn()
        let former = VAPIDKey(.generate())
        @Sendable func token(_ path: String, _ key: VAPIDKey) throws -> [UInt8] {
            let keys = try #require(WebPushKeys(publicKey: receiver.key.publicKey, secret: receiver.secret))
            return try #require(PushSubscription(endpoint: service.endpoint(path), keys: keys, vapidKey: key.key.publicKey)).json
        }
        try await fixture.withNode(
            configure: { $0.node.webPush = endpoint(service, former: [former]) }, endpoints: [.none]
        ) { node async throws in
            #expect(try await register(node, token: try token("/a", VAPIDKey(.generate()))) == .malformedMessage)
            #expect(try await register(node, token: try token("/a", former)) == nil)
            #expect(try await node.notify(bob) == nil)
            #expect(service.requests.last?.headers["authorization"]?.hasSuffix("k=\(former.publicKey)") == true)
            func status() async -> (finding: String?, fact: String?) {
                let status = await node.node.status()
                return (
                    status.findings.first { $0.check == "web push keys" }?.text,
                    status.protocols?.flatMap(\.facts).first { $0.name == "Web Push subscriptions" }?.value
                )
            }
            // The numbers may be some seconds old.
            try await eventually {
                let (finding, fact) = await status()
                return finding == "Status: 1 Web Push subscriptions are for a former VAPID key"
                    && fact == "0 for the current VAPID key, 1 for former keys, 0 name no key"
            }
            let exposition = await node.node.observation.gauges.exposition(isReady: true)
            for (role, count) in [("current", 0), ("former", 1), ("foreign", 0), ("unnamed", 0)] {
                #expect(
                    exposition.contains("waku_push_web_push_subscriptions{protocol=\"status\",key=\"\(role)\"} \(count).0\n"), "\(role)")
            }
            #expect(!exposition.contains(former.publicKey))
            #expect(try await register(node, token: try token("/a", key), version: 2) == nil)
            #expect(try await node.notify(bob) == nil)
            #expect(service.requests.last?.headers["authorization"]?.hasSuffix("k=\(key.publicKey)") == true)
        }
    }

    @Test("With collapse: chat a push service learns which messages are of one chat, and with message which are repeated")
    func collapse() async throws {
        let service = try await PushServiceStandIn()
        let subscription = try #require(receiver.subscription(service.endpoint("/a")))
        @Sendable func settings(_ collapse: NotificationStyle.Collapse?, endpoints: Set<String>? = nil) -> NotificationSettings {
            var rule = NotificationSettings.Rule()
            rule.style.collapse = collapse
            rule.endpoints = endpoints
            return NotificationSettings([rule])
        }
        try await fixture.withNode(
            configure: {
                $0.node.webPush = endpoint(service)
                $0.node.webPush?.settings = settings(.chat)
            }, endpoints: [.none]
        ) { node async throws in
            #expect(try await register(node, token: subscription.json) == nil)
            for settings in [settings(.chat), settings(.message), settings(.never), settings(.chat, endpoints: ["gorush"]), .none] {
                node.node.replaceWebPushSettings(settings)
                // Both are of the same chat.
                #expect(try await node.notify(bob) == nil)
                #expect(try await node.notify(bob) == nil)
            }
            let topics = service.requests.map { $0.headers["topic"] }
            try #require(topics.count == 10)
            #expect(topics[0] != nil && topics[0] == topics[1])
            #expect(topics[2] != nil && topics[3] != nil && Set(topics[0..<4]).count == 3)
            #expect(topics[4...].allSatisfy { $0 == nil })
        }
    }

    @Test("A notification that waits goes to the subscription that the device moved to")
    func moved() async throws {
        let service = try await PushServiceStandIn()
        let (old, new) = (
            try #require(receiver.subscription(service.endpoint("/status/503/1"))),
            try #require(receiver.subscription(service.endpoint("/b")))
        )
        try await fixture.withNode(configure: { $0.node.webPush = endpoint(service) }, endpoints: [.none]) { node async throws in
            #expect(try await register(node, token: old.json) == nil)
            async let notified = node.notify(bob)
            try await node.wait { node.count(.webPushLater) >= 1 }
            #expect(try await register(node, token: new.json, version: 2) == nil)
            try await node.wait { node.count(.webPushAccepted) == 1 }
            #expect(service.requests.last?.path == "/b")
            _ = try await notified
            #expect(try await node.notify(bob) == nil)
            #expect(service.requests.last?.path == "/b" && node.count(.webPushAccepted) == 2)
        }
    }

    private static func limits(_ text: String) throws -> Limits {
        var limits = Limits.none
        try limits.set(text)
        return limits
    }

    @Test("web-push-devices-by-origin refuses further devices of a push service; updates pass, and devices that end make room")
    func devicesByOrigin() async throws {
        let service = try await PushServiceStandIn()
        let limits = try Self.limits("web-push-devices-by-origin=2")
        let clients = (0..<4).map { _ in TestClient(of: fixture.identity.publicKey) }
        @Sendable func register(
            _ node: RunningNode, _ number: Int, _ endpoint: String, version: UInt64
        ) async throws -> PushNotificationRegistrationResponse.ErrorType? {
            let (client, subscription) = (clients[number], try #require(receiver.subscription(endpoint)))
            return try await node.withClient(client.identity) { [key] push in
                try await push.register(
                    DeviceProfile(platform: .webPush, deviceToken: DeviceToken(bytes: subscription.json)), as: client.installationID,
                    accessToken: client.accessToken, version: version, with: node.server, vapidKey: key.publicKey, timeout: .seconds(60))
            }
        }
        @Sendable func configure(_ configuration: inout ServerConfiguration) {
            configuration.node.webPush = endpoint(service)
            configuration.limits = limits
        }
        try await fixture.withNode(configure: configure, endpoints: [.none]) { node async throws in
            for number in 0..<2 { #expect(try await register(node, number, service.endpoint("/\(number)"), version: 1) == nil) }
            #expect(try await register(node, 2, service.endpoint("/2"), version: 1) == .internalError)
            #expect(node.count(.limit(.webPushDevicesByOrigin)) == 1 && node.count(.registrationLimited) == 1)
            #expect(try await register(node, 2, "https://push.example/2", version: 2) == nil)
            // An update, and a move from another push service.
            #expect(try await register(node, 0, service.endpoint("/other"), version: 2) == nil)
            #expect(try await register(node, 2, service.endpoint("/2"), version: 3) == .internalError)
            // As a reload of the configuration does.
            node.process.replaceLimits(.none)
            #expect(try await register(node, 2, service.endpoint("/2"), version: 4) == nil)
            node.process.replaceLimits(limits)
            let ended = try await node.withClient(clients[1].identity) { push in
                try await push.unregister(clients[1].installationID, version: 2, with: node.server, timeout: .seconds(60))
            }
            #expect(ended == nil)
            #expect(try await register(node, 3, service.endpoint("/3"), version: 1) == .internalError)
        }
        // After a restart, and after the end of a subscription that its push service does not know any more.
        try await fixture.withNode(configure: configure, endpoints: [.none]) { node async throws in
            #expect(try await register(node, 3, service.endpoint("/3"), version: 2) == .internalError)
            #expect(try await register(node, 0, service.endpoint("/status/410"), version: 3) == nil)
            _ = try await node.notify(clients[0])
            try await node.wait { node.count(.tokenRemoved) == 1 }
            #expect(try await register(node, 3, service.endpoint("/3"), version: 3) == nil)
        }
    }

    @Test("Devices of APNs are refused without gorush, and wrong subscriptions as malformed")
    func refused() async throws {
        let service = try await PushServiceStandIn()
        try await fixture.withNode(configure: { $0.node.webPush = endpoint(service) }, endpoints: [.none]) { node async throws in
            #expect(try await node.register(bob) == .unsupportedTokenType)
            for token in ["{}", "x", "{\"endpoint\":\"http://a.example/\"}"] {
                #expect(try await register(node, token: Array(token.utf8)) == .malformedMessage)
            }
        }
    }

    @Test("The alarm about a refused key tells whether the push service accepts messages", arguments: [false, true])
    func refusedKey(isProven: Bool) async throws {
        let service = try await PushServiceStandIn()
        let accepting = try #require(receiver.subscription(service.endpoint("/a")))
        let refusing = try #require(receiver.subscription(service.endpoint("/status/403")))
        try await fixture.withNode(configure: { $0.node.webPush = endpoint(service) }, endpoints: [.none]) { node async throws in
            if isProven {
                #expect(try await register(node, token: accepting.json) == nil)
                #expect(try await node.notify(bob) == nil)
            }
            #expect(try await register(node, token: refusing.json, version: 2) == nil)
            // It has no answer until the notification is posted again.
            let notifying = Task { try await node.notify(bob) }
            try await node.wait { node.node.base.alarms.isActive(.webPushKeyRefused) }
            notifying.cancel()
            _ = await notifying.result
            let alarm = try #require(node.node.base.alarms.all.first { $0.kind == .webPushKeyRefused })
            let finding = node.node.findings.first { $0.check == "web push" }
            #expect(finding?.verdict == .warn && finding?.text.contains("does not accept the key: status 403") == true)
            #expect(alarm.reason == "status 403" + (isProven ? "" : "; it accepted nothing within 24 hours"))
        }
    }

    @Test("Without the option, subscriptions are refused as an unsupported token type")
    func off() async throws {
        let subscription = try #require(receiver.subscription("https://push.example/a"))
        try await fixture.withNode { node async throws in
            #expect(try await register(node, token: subscription.json) == .unsupportedTokenType)
        }
    }

    @Test("A subscription is sent to no server that was not named with its VAPID key")
    func namedServersOnly() async throws {
        let subscription = try #require(receiver.subscription("https://push.example/a"))
        try await fixture.withNode { [bob] node async throws in
            await #expect(throws: PushClientError.self) {
                try await node.withClient(bob.identity) { client in
                    try await client.register(
                        DeviceProfile(platform: .webPush, deviceToken: DeviceToken(bytes: subscription.json)), as: bob.installationID,
                        accessToken: bob.accessToken, version: 1, with: node.server, timeout: .seconds(60))
                }
            }
            #expect(node.count(.received) == 0)
        }
    }
}
