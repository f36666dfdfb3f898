import Cluster
import Core
import CurlClient
import Delivery
import Foundation
import NodeAssembly
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusServer
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Web Push: several nodes", .timeLimit(.minutes(10)))
struct WebPushClusterTests {
    private let receiver = WebPushReceiver()
    private let key = VAPIDKey(.generate())

    private func endpoint(_ service: PushServiceStandIn) -> WebPushEndpoint {
        let configuration = WebPushClient.configuration(
            trust: .file(path: service.authority), allowed: ["127.0.0.0/8"].compactMap { AddressRange($0) })
        return WebPushEndpoint(
            WebPushClient(
                client: CurlClient(configuration: configuration), key: key, contact: "mailto:operator@example.org", timeout: .seconds(60)))
    }

    @Test("Three nodes on PostgreSQL post each notification once, and end a subscription that is gone")
    func threeNodes() async throws {
        let fixture = try await ClusterFixture()
        let service = try await PushServiceStandIn()
        let clients = (0..<30).map { _ in TestClient(of: fixture.identity.publicKey) }
        @Sendable func registration(_ client: TestClient, _ path: String) throws -> [WakuMessage] {
            let token = DeviceToken(bytes: try #require(receiver.subscription(service.endpoint(path))).json)
            let registration = client.registration { ($0.tokenType, $0.deviceToken, $0.apnTopic) = (Platform.webPushTokenType, token, "") }
            return EnvelopeSealing.seal(
                client.envelope(registration), to: .personal(fixture.identity.publicKey), wakuSigner: client.identity, at: .now())
        }
        let gone = TestClient(of: fixture.identity.publicKey)
        // No node takes over a message that another node handles slowly.
        @Sendable func configure(_ configuration: inout ServerConfiguration) {
            configuration.node.webPush = endpoint(service)
            configuration.cluster?.times.rankDelay = .seconds(120)
        }
        try await fixture.withNodes(["a", "b", "c"], configure: configure) { members in
            try await members.waitUntilShared()
            for (number, client) in clients.enumerated() { await members.feed(try registration(client, "/\(number)")) }
            await members.feed(try registration(gone, "/status/410"))
            try await members.wait { $0.count(.registrationStored) == 31 }

            await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { $0.count(.webPushAccepted) >= 30 && $0.count(.requestAnswered) == 30 }
            #expect(Set(service.requests.map(\.path)) == Set((0..<30).map { "/\($0)" }) && service.requests.count == 30)
            #expect(members.count(.webPushAccepted) == 30)
            for request in service.requests { _ = try receiver.open(request.body) }

            await members.feed(fixture.request(gone, id: "gone"))
            try await members.wait { $0.count(.tokenRemoved) == 1 }
            let posted = service.requests.count
            await members.feed(fixture.request(gone, id: "later"))
            try await members.wait { $0.count(.requestAnswered) == 32 }
            #expect(service.requests.count == posted)
        }
    }

    @Test("Three nodes on PostgreSQL: devices that move away from a gorush that asks for a pause get their waiting notifications first")
    func moved() async throws {
        let fixture = try await ClusterFixture()
        let service = try await PushServiceStandIn()
        let clients = (0..<6).map { _ in TestClient(of: fixture.identity.publicKey) }
        fixture.gorush.answer(.failed(retryAfter: .seconds(300)))
        try await fixture.withNodes(["a", "b", "c"], configure: { $0.node.webPush = endpoint(service) }) { members in
            try await members.waitUntilShared()
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.count(.registrationStored) == 6 }
            for id in ["1", "2"] { await members.feed(clients.flatMap { fixture.request($0, id: id) }) }
            try await members.wait { $0.reduce(0) { $0 + $1.fed.node.delivery.waitingCount } == 12 && fixture.gorush.attempts > 0 }

            for client in clients {
                let token = DeviceToken(bytes: try #require(receiver.subscription(service.endpoint("/a"))).json)
                let registration = client.registration(version: 2) {
                    ($0.tokenType, $0.deviceToken, $0.apnTopic) = (Platform.webPushTokenType, token, "")
                }
                await members.feed(
                    EnvelopeSealing.seal(
                        client.envelope(registration), to: .personal(fixture.identity.publicKey), wakuSigner: client.identity, at: .now()))
            }
            try await members.wait { $0.count(.registrationStored) == 12 }
            await members.feed(clients.flatMap { fixture.request($0, id: "3") })
            try await members.wait { $0.count(.webPushAccepted) == 18 }
            let posted = try service.requests.map { request in
                try #require(try JSONSerialization.jsonObject(with: Data(receiver.open(request.body))) as? [String: Any])["id"] as? String
            }
            for client in clients {
                // Two nodes may have stored the first two requests, in either order.
                let ids = ["1", "2", "3"].map { DeliveryID(messageID: Array($0.utf8), key: client.key).notificationID }
                let own = posted.compactMap(\.self).filter(ids.contains)
                #expect(Set(own) == Set(ids) && own.count == 3 && own.last == ids[2])
            }
            #expect(fixture.gorush.accepted.isEmpty)
        }
    }

    @Test("Three nodes on PostgreSQL count the devices of a push service together")
    func devicesByOrigin() async throws {
        let fixture = try await ClusterFixture()
        let service = try await PushServiceStandIn()
        let clients = (0..<12).map { _ in TestClient(of: fixture.identity.publicKey) }
        var limits = Limits.none
        try limits.set("web-push-devices-by-origin=3")
        try await fixture.withNodes(
            ["a", "b", "c"],
            configure: { [limits] in
                $0.node.webPush = endpoint(service)
                $0.limits = limits
            }
        ) { members in
            try await members.waitUntilShared()
            for (number, client) in clients.enumerated() {
                let token = DeviceToken(bytes: try #require(receiver.subscription("https://push.example/\(number)")).json)
                let registration = client.registration {
                    ($0.tokenType, $0.deviceToken, $0.apnTopic) = (Platform.webPushTokenType, token, "")
                }
                let before = members.count(.registrationStored) + members.count(.registrationLimited)
                await members.feed(
                    EnvelopeSealing.seal(
                        client.envelope(registration), to: .personal(fixture.identity.publicKey), wakuSigner: client.identity, at: .now()))
                // One after the other: nodes that register at the same moment may exceed the limit.
                try await members.wait { $0.count(.registrationStored) + $0.count(.registrationLimited) > before }
            }
            // A node that is slow may count a refusal that another one has made.
            #expect(members.count(.registrationStored) == 3 && members.count(.limit(.webPushDevicesByOrigin)) >= 9)
        }
    }
}
