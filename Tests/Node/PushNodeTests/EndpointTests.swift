import Delivery
import NodeAPI
import NodeMetrics
import PushClient
@testable import PushNode
import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("Several gorush servers")
struct EndpointTests {
    let fixture: NodeFixture
    let apple = ScriptedGorush()
    let google = ScriptedGorush()
    let phone: TestClient
    let pixel: TestClient

    init() throws {
        fixture = try NodeFixture()
        phone = TestClient(of: fixture.identity.publicKey)
        pixel = TestClient(of: fixture.identity.publicKey)
    }

    private func endpoints(apps: Set<String> = ["app"], sandbox: Set<String> = ["app.pr"]) -> [GorushEndpoint] {
        [
            GorushEndpoint(apple, rule: EndpointRule(name: "apple", platforms: [.apn], apnTopics: apps, sandboxTopics: sandbox)),
            GorushEndpoint(google, rule: EndpointRule(name: "google", platforms: [.firebase])),
        ]
    }

    @Test("Each gets the notifications for its platform and apps, and registrations of other apps are refused")
    func routes() async throws {
        try await fixture.withNode(endpoints: endpoints()) { [self] node async throws in
            let tester = TestClient(of: node.server)
            #expect(try await node.register(phone) == nil)
            #expect(try await node.register(tester, apnTopic: "app.pr") == nil)
            #expect(try await node.register(pixel, platform: .firebase) == nil)
            #expect(try await node.register(TestClient(of: node.server), apnTopic: "app.other") == .unsupportedTokenType)
            for client in [phone, tester, pixel] { #expect(try await node.notify(client) == nil) }
            #expect(apple.accepted.map(\.apnTopic) == ["app", "app.pr"])
            #expect(apple.accepted.map(\.isForSandbox) == [false, true])
            #expect(google.accepted.map(\.registrant) == [pixel.keyHash])
            #expect(google.accepted.map(\.isForSandbox) == [false])
        }
    }

    @Test("The circuit breaker of one that fails does not affect the other")
    func failure() async throws {
        apple.answer(.failed(retryAfter: .seconds(60)))
        try await fixture.withNode(endpoints: endpoints()) { [self] node async throws in
            #expect(try await node.register(phone) == nil)
            #expect(try await node.register(pixel, platform: .firebase) == nil)
            // The first waits for the verdict, the others are answered at once.
            for _ in 0..<3 { #expect(try await node.notify(phone) == .internalError) }
            #expect(node.node.obstacles.contains { $0.hasPrefix("apple: unavailable, 3 waiting") })
            #expect(node.node.findings.first { $0.check == "google" }?.verdict == .ok)
            for _ in 0..<3 { #expect(try await node.notify(pixel) == nil) }
            #expect(google.accepted.count == 3)
            #expect(apple.attempts == 1)

            // Both in one request.
            let reports = try await node.withClient { client in
                try await client.notify(
                    [phone, pixel].map {
                        PushNotification(
                            accessToken: $0.accessToken, chatID: Shake256.hash64([1]), publicKey: $0.keyHash.bytes,
                            installationID: $0.installationID, kind: .message, author: Shake256.hash64([2]))
                    }, messageID: randomBytes(32), at: node.server, timeout: .seconds(60))
            }
            #expect(reports.map(\.error) == [.internalError, nil])
            #expect(google.accepted.count == 4)
        }
        // After a restart waiting notifications go to the same endpoint, and to no other.
        apple.answer(.accepted)
        try await fixture.withNode(endpoints: endpoints()) { [self] node async throws in
            try await node.wait { apple.accepted.count == 4 }
            #expect(apple.accepted.allSatisfy { $0.registrant == phone.keyHash })
            #expect(google.accepted.count == 4)
        }
    }

    @Test("A device that moves to another app while its notification waits is notified there")
    func moved() async throws {
        apple.answer(.failed(retryAfter: nil))
        try await fixture.withNode(endpoints: endpoints()) { [self] node async throws in
            #expect(try await node.register(phone) == nil)
            #expect(try await node.notify(phone) == .internalError)
            #expect(try await node.register(phone, version: 2, platform: .firebase) == nil)
            apple.answer(.accepted)
            try await node.wait { google.accepted.count == 1 }
            #expect(apple.accepted.isEmpty)
        }
    }

    @Test("A device that moves away from a gorush that asks for a pause gets its waiting notifications first, before the pause ends")
    func movedFromPaused() async throws {
        apple.answer(.failed(retryAfter: .seconds(300)))
        try await fixture.withNode(endpoints: endpoints()) { [self] node async throws in
            #expect(try await node.register(phone) == nil)
            for id in [1, 2] as [UInt8] { #expect(try await node.notify(phone, messageID: [id]) == .internalError) }
            #expect(try await node.register(phone, version: 2, platform: .firebase) == nil)
            #expect(try await node.notify(phone, messageID: [3]) == nil)
            #expect(google.accepted.map(\.id) == [1, 2, 3].map { DeliveryID(messageID: [$0], key: phone.key).notificationID })
            #expect(apple.accepted.isEmpty && apple.attempts == 1)
        }
    }

    @Test("Waiting notifications for an app without an endpoint stay in the outbox until there is one")
    func unroutable() async throws {
        apple.answer(.failed(retryAfter: nil))
        try await fixture.withNode(endpoints: endpoints()) { [self] node async throws in
            #expect(try await node.register(phone) == nil)
            #expect(try await node.notify(phone) == .internalError)
        }
        apple.answer(.accepted)
        try await fixture.withNode(endpoints: endpoints(apps: ["app.new"])) { [self] node async throws in
            #expect(node.node.findings.first { $0.check == "outbox" }?.text.hasPrefix("1 notifications wait") == true)
            #expect(try await node.notify(phone) == .internalError)
            #expect(node.node.findings.first { $0.check == "outbox" }?.text.hasPrefix("2 notifications wait") == true)
            #expect(apple.accepted.isEmpty)
        }
        try await fixture.withNode(endpoints: endpoints()) { [self] node async throws in
            try await node.wait { apple.accepted.count == 2 }
            #expect(node.node.findings.allSatisfy { $0.check != "outbox" })
        }
    }

    @Test("Registered devices of a platform without an endpoint are counted in a finding")
    func unserved() async throws {
        try await fixture.withNode(endpoints: endpoints()) { [self] node async throws in
            #expect(try await node.register(phone) == nil)
            #expect(try await node.register(pixel, platform: .firebase) == nil)
            _ = await node.node.status()
            #expect(node.node.findings.allSatisfy { $0.check != "devices" })
        }
        // Devices are counted after the start, though nobody asks for figures.
        try await fixture.withNode(endpoints: [endpoints()[1]]) { node async throws in
            try await node.wait { node.node.findings.contains { $0.check == "devices" } }
            let finding = node.node.findings.first { $0.check == "devices" }
            #expect(finding?.verdict == .warn)
            #expect(finding?.text == "Status: no endpoint for registered devices (1 apn): they are not notified")
        }
    }
}
