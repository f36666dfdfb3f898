import Core
import CurlClient
import Delivery
import Foundation
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushClient
import PushNode
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

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

    private func endpoint(_ service: PushServiceStandIn) -> WebPushEndpoint {
        let configuration = WebPushClient.configuration(
            trust: .file(path: service.authority), allowed: ["127.0.0.0/8"].compactMap { IPNetwork($0) })
        let client = WebPushClient(
            client: CurlClient(configuration: configuration), key: key, contact: "mailto:operator@example.org", timeout: .seconds(60))
        return WebPushEndpoint(client, publicKey: key.publicKey)
    }

    private func register(
        _ node: RunningNode, token: [UInt8], version: UInt64 = 1
    ) async throws -> PushNotificationRegistrationResponse.ErrorType? {
        try await node.withClient(bob.identity) { [bob, key] client in
            let device = DeviceRegistration(
                platform: .webPush, deviceToken: DeviceToken(bytes: token), installationID: bob.installationID,
                accessToken: bob.accessToken,
                version: version)
            return try await client.register(device, with: node.server, vapidKey: key.publicKey, timeout: .seconds(60))
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
            _ = try await node.notify(bob)
            try await node.wait { node.count(.tokenRemoved) == 1 }
            #expect(try await node.notify(bob) == .notRegistered)
            let finding = try #require(node.node.findings.first { $0.check == "web push" })
            #expect(finding.text.contains(key.publicKey) && finding.text.contains("no gorush"))
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
                    let device = DeviceRegistration(
                        platform: .webPush, deviceToken: DeviceToken(bytes: subscription.json), installationID: bob.installationID,
                        accessToken: bob.accessToken, version: 1)
                    return try await client.register(device, with: node.server, timeout: .seconds(60))
                }
            }
            #expect(node.count(.received) == 0)
        }
    }
}
