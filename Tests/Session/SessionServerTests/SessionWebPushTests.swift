import Core
import CurlClient
import Delivery
import Foundation
import NodeAPI
import NodeMetrics
import RateLimits
import StorePostgreSQL
import TestSupport
import Testing
import WakuCrypto

@testable import PushNode
@testable import SessionServer

@Suite("Session: Web Push devices", .timeLimit(.minutes(10)))
struct SessionWebPushTests {
    private let key = VAPIDKey(.generate())

    private func fixture(_ engine: SecondReportTests.Engine) async throws -> SessionNodeFixture {
        let fixture = try SessionNodeFixture()
        guard engine == .postgreSQL else { return fixture }
        let address = try PostgreSQLAddress(try await PostgreSQLServer.shared().makeDatabase())
        return try SessionNodeFixture("a", of: fixture, sharing: address)
    }

    private func endpoint(_ service: PushServiceStandIn) -> WebPushEndpoint {
        let configuration = WebPushClient.configuration(
            trust: .file(path: service.authority), allowed: ["127.0.0.0/8"].compactMap { AddressRange($0) })
        return WebPushEndpoint(
            WebPushClient(
                client: CurlClient(configuration: configuration), key: key, contact: "mailto:operator@example.org", timeout: .seconds(60)))
    }

    private func device(_ receiver: WebPushReceiver, _ endpoint: String, for key: VAPIDKey? = nil) throws -> SessionDevice {
        let keys = try #require(WebPushKeys(publicKey: receiver.key.publicKey, secret: receiver.secret))
        let subscription = try #require(PushSubscription(endpoint: endpoint, keys: keys, vapidKey: key?.key.publicKey))
        return SessionDevice(.webPush, token: String(decoding: subscription.json, as: UTF8.self))
    }

    @Test(
        "Messages are posted encrypted; a renewed subscription gets them with its new keys; one that is gone ends",
        arguments: SecondReportTests.Engine.allCases)
    func notified(_ engine: SecondReportTests.Engine) async throws {
        let service = try await PushServiceStandIn()
        let fixture = try await fixture(engine)
        let account = try SessionAccount.sessionID()
        let (first, second) = (WebPushReceiver(), WebPushReceiver())
        try await fixture.withNode(webPush: endpoint(service)) { node async throws in
            #expect(try await node.subscribe(account, device(first, service.endpoint("/a"), for: key)).contains("\"success\":true"))
            let shown = try await node.send("GET", "/web-push")
            #expect(shown.status == 200 && String(decoding: shown.body, as: UTF8.self) == "{\"key\":\"\(key.publicKey)\"}")
            #expect(shown.header("access-control-allow-origin") == "*")
            try await eventually { fixture.monitor.accounts == [account.id] }
            await fixture.monitor.report([message(for: account)])
            try await eventually { service.requests.count == 1 }
            let content = try #require(
                try JSONSerialization.jsonObject(with: Data(first.open(service.requests[0].body))) as? [String: Any])
            #expect(content["protocol"] as? String == "session" && content["enc_payload"] is String && content["spns"] as? Int == 1)

            // The same endpoint: the device moved to other keys.
            let renewed = try await node.subscribe(account, device(second, service.endpoint("/a"), for: key), at: .now + 1)
            #expect(renewed.contains("\"success\":true"), "\(renewed)")
            await fixture.monitor.report([message(for: account)])
            try await eventually { service.requests.count == 2 }
            _ = try second.open(service.requests[1].body)
            try await eventually { node.node.counters.count(.webPushAccepted) == 2 }

            let refused = try await node.subscribe(account, device(first, service.endpoint("/b"), for: VAPIDKey(.generate())))
            #expect(refused.contains("vapid is not a key of this server"), "\(refused)")

            let other = try SessionAccount.sessionID()
            #expect(try await node.subscribe(other, device(first, service.endpoint("/status/410"))).contains("\"success\":true"))
            try await eventually { fixture.monitor.accounts.count == 2 }
            await fixture.monitor.report([message(for: other)])
            try await eventually { node.node.counters.count(.tokenRemoved) == 1 }
            // Read once in some seconds.
            try await eventually {
                await node.service?.facts().first { $0.name == "Web Push subscriptions" }?.value
                    .hasPrefix("1 for the current VAPID key, 0 for former keys") == true
            }
        }
    }

    @Test(
        "web-push-devices-by-origin refuses further devices; renewals pass, and devices that end make room",
        arguments: SecondReportTests.Engine.allCases)
    func devicesByOrigin(_ engine: SecondReportTests.Engine) async throws {
        let service = try await PushServiceStandIn()
        let fixture = try await fixture(engine)
        let (account, other) = (try SessionAccount.sessionID(), try SessionAccount.sessionID())
        let receiver = WebPushReceiver()
        let (a, gone) = (try device(receiver, service.endpoint("/a")), try device(receiver, service.endpoint("/status/410")))
        func configure(_ configuration: inout SessionPush.Configuration) { configuration.limits.webPushDevicesByOrigin = 1 }
        try await fixture.withNode(configure: configure, webPush: endpoint(service)) { node async throws in
            #expect(try await node.subscribe(account, a).contains("\"added\":true"))
            let refused = try await node.refused("/subscribe", other.json(other.subscription(gone)))
            #expect(refused.retryAfter == 60 && refused.json.contains("\"error\":4"), "\(refused)")
            #expect(LimitCounters.session[.webPushDevicesByOrigin].map(node.node.counters.count) == 1)
            #expect(try await node.subscribe(account, a, at: .now + 1).contains("\"updated\":true"))
            #expect(try await node.subscribe(account, SessionDevice()).contains("\"added\":true"))
        }
        // After a restart, too.
        try await fixture.withNode(configure: configure, webPush: endpoint(service)) { node async throws in
            #expect(try await node.refused("/subscribe", other.json(other.subscription(gone))).retryAfter == 60)
            // By its endpoint alone.
            let all = account.json(account.unsubscription(a, at: .now + 2))
            let ended = try #require(
                all.firstRange(of: #/,"p256dh":"[^"]*","auth":"[^"]*"/#).map { all.replacingCharacters(in: $0, with: "") })
            #expect(try await node.ask("/unsubscribe", ended).contains("\"removed\":true"))
            #expect(try await node.subscribe(other, gone).contains("\"added\":true"))
            try await eventually { fixture.monitor.accounts.contains(other.id) }
            #expect(try await node.refused("/subscribe", other.json(other.subscription(a))).retryAfter == 60)
            await fixture.monitor.report([message(for: other)])
            try await eventually { node.node.counters.count(.tokenRemoved) == 1 }
            #expect(try await node.subscribe(other, a).contains("\"added\":true"))
        }
    }
}
