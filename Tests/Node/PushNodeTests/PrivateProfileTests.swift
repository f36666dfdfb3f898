import Core
import CurlClient
import Delivery
import Foundation
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushNode
import StatusProtocol
import StatusServer
@testable import StatusV01Server
import TestSupport
import Testing
import Waku
import WakuCrypto

/// The payload profile `private`: the bodies that a gorush, and so Apple, Google and Huawei, get.
@Suite("The profile private")
struct PrivateProfileTests {
    private static let now = Timestamp(rawValue: 1_000_000_000_000_000)
    private static let count = LongTests.areEnabled ? 10_000 : 2_000
    private let cipher = NotificationIDCipher(identity: .generate())

    /// A notification of one of 50 chats, registrants and installations, of any kind, of Status or 0.1, for one of 50 devices.
    private func notification(_ number: Int, on platform: Platform) throws -> Delivery.Notification {
        let chat = Shake256.hash64([1, UInt8(number % 50)])
        let registrant = try #require(KeyHash(bytes: Shake256.hash64([2, UInt8(number / 7 % 50)])))
        let installation = InstallationID("installation-\(number / 11 % 50)" + String(repeating: "x", count: number % 5))
        // Of a few bytes to 3 KiB; every tenth is one of five, for several devices.
        let message = number % 10 == 0 ? [UInt8](repeating: 7, count: number / 10 % 5) : randomBytes(1 + number * 37 % 3072)
        let kinds = [1, 2, 3, 4, 9].map { NotificationKind(rawValue: $0) }
        let content: any NotificationContent =
            number % 3 == 0
            ? V01Content(chatID: chat, message: message, installationID: installation)
            : StatusContent(
                kind: kinds[number % kinds.count], chatID: number % 13 == 0 ? [] : chat, registrant: registrant, message: message,
                installationID: installation)
        let id = DeliveryID(hashing: chat, message, installation.string.utf8.map(\.self), [UInt8(number & 255), UInt8(number >> 8)])
        return Delivery.Notification(
            id: id.notificationID, platform: platform, deviceToken: DeviceToken("token-" + String(repeating: "t", count: 1 + number % 50)),
            apnTopic: "im.status.app", expires: Self.now + .seconds(number % 600), content: content)
    }

    /// The notifications of posts of 100, each as its bytes.
    private func entries(_ format: NotificationFormat, on platform: Platform) throws -> [(
        notification: Delivery.Notification, text: String
    )] {
        try stride(from: 0, to: Self.count, by: 100).flatMap { start in
            let batch = try (start..<start + 100).map { try notification($0, on: platform) }
            let body = String(decoding: format.encode(batch, at: Self.now), as: UTF8.self)
            let prefix = #"{"notifications":["#
            #expect(body.hasPrefix(prefix) && body.hasSuffix("]}"))
            let texts = body.dropFirst(prefix.count).dropLast(2).replacing(#"},{"notif_id""#, with: "}\n{\"notif_id\"").split(
                separator: "\n")
            try #require(texts.count == batch.count)
            return zip(batch, texts.map(String.init)).map { ($0, $1) }
        }
    }

    private static var constantRules: NotificationSettings {
        var rule = NotificationSettings.Rule()
        rule.style.sound = "default"
        rule.style.priority = .high
        rule.style.timeToLive = .seconds(3600)
        rule.style.collapse = .message
        rule.style.deepLink = DeepLinkTemplate("app://open")
        return NotificationSettings([rule])
    }

    @Test(
        "Thousands of bodies of 50 chats, senders and kinds are equal but for token and random id",
        arguments: [Platform.apn, .firebase, .huawei], [false, true])
    func equalBodies(platform: Platform, hasRules: Bool) throws {
        let format = NotificationFormat(.private, settings: hasRules ? Self.constantRules : .none, ids: cipher)
        var templates: Set<String> = []
        var ids: Set<String> = []
        for (notification, text) in try entries(format, on: platform) {
            let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            let id = try #require(object["notif_id"] as? String)
            #expect(id.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/) != nil)
            #expect(ids.insert(id).inserted)
            // The bytes, and so the order of keys; the ids all have the same length.
            templates.insert(
                text.replacing(id, with: "ID").replacing("\"\(notification.deviceToken.revealed)\"", with: "TOKEN"))
        }
        #expect(ids.count == Self.count)
        #expect(templates.count == 1, "\(templates.prefix(3))")
        let template = try #require(templates.first)
        #expect(template.contains(#""tokens":[TOKEN]"#) && template.contains(PayloadProfile.privateText))
        guard !hasRules else { return }
        switch platform {
        case .apn:
            #expect(
                template
                    == #"{"notif_id":"ID","tokens":[TOKEN],"platform":1,"message":"You have a new notification","topic":"im.status.app","#
                    + #""collapse_id":"ID","mutable_content":true,"data":{"id":"ID"}}"#)
        case .firebase:
            #expect(
                template
                    == #"{"notif_id":"ID","tokens":[TOKEN],"platform":2,"message":"You have a new notification","mutable_content":true,"#
                    + #""data":{"id":"ID"}}"#)
        default:
            #expect(
                template
                    == #"{"notif_id":"ID","tokens":[TOKEN],"platform":3,"message":"You have a new notification","#
                    + #""huawei_data":"{\"id\":\"ID\"}"}"#)
        }
    }

    @Test("The test sees what other profiles disclose", arguments: [PayloadProfile.combined, .rfc])
    func othersDiffer(profile: PayloadProfile) throws {
        let texts = try (0..<50).map { number in
            let body = NotificationFormat(profile).encode([try notification(number * 3 + 1, on: .apn)], at: Self.now)
            return String(decoding: body, as: UTF8.self)
        }
        #expect(Set(texts.map(\.utf8.count)).count > 10)
    }

    /// The configuration refuses such rules; a reload that keeps a server's options may leave some.
    @Test("Rules by which notifications would differ have no effect")
    func rulesThatDistinguish() throws {
        var rules = Self.constantRules.rules
        for kind in ContentKind.allCases {
            var rule = NotificationSettings.Rule(NotificationStyle(body: kind.rawValue))
            rule.kinds = [kind]
            rules.append(rule)
        }
        var rule = NotificationSettings.Rule(NotificationStyle(body: "0.1"))
        rule.protocols = ["status-v0.1"]
        rules.append(rule)
        rule = NotificationSettings.Rule()
        (rule.style.timeToLive, rule.style.collapse, rule.style.thread) = (.remaining, .chat, .chat)
        rule.style.deepLink = try DeepLinkTemplate(parsing: "app:{kind}/{chat}")
        rules.append(rule)
        let settings = NotificationSettings(rules)
        for platform in Platform.ofGorush {
            for number in 0..<60 {
                let batch = [try notification(number, on: platform)]
                #expect(
                    NotificationFormat(.private, settings: settings, ids: cipher).encode(batch, at: Self.now)
                        == NotificationFormat(.private, settings: Self.constantRules, ids: cipher).encode(batch, at: Self.now))
            }
        }
        #expect(
            settings.distinctions(fixedProtocols: ["session"])
                == ["kinds", "protocols", "ttl: remaining", "collapse: chat", "thread: chat", "placeholders in deep-link"])
        #expect(Self.constantRules.distinctions(fixedProtocols: ["session"]) == [])
    }

    @Test("Posted ids are the same in each attempt and at each node, and tell nothing without the identity")
    func ids() throws {
        let identity = PrivateKey.generate()
        let id = DeliveryID(hashing: [1]).notificationID
        let posted = NotificationIDCipher(identity: identity).postedID(of: id)
        #expect(NotificationIDCipher(identity: identity).postedID(of: id) == posted)
        #expect(cipher.postedID(of: id) != posted)
        #expect(!posted.replacing("-", with: "").contains(id.prefix(8)))
        // Without a key each attempt has another.
        let batch = [try notification(1, on: .apn)]
        let format = NotificationFormat(.private)
        #expect(format.encode(batch, at: Self.now) != format.encode(batch, at: Self.now))
        #expect(!format.showsRepetitionOnce(batch[0]))
        #expect(NotificationFormat(.private, ids: cipher).showsRepetitionOnce(batch[0]))
    }

    @Test("Failures that gorush reports, in its reply or by its hook, are matched to the token", arguments: [false, true])
    func feedback(byHook: Bool) async throws {
        let secret = "0123456789-the-secret"
        let fixture = try NodeFixture()
        let bob = TestClient(of: fixture.identity.publicKey)
        let gorush = try RawHTTPServer { request in
            guard !byHook, let id = Self.id(in: request.body) else { return .status(200, body: #"{"success":"ok","counts":1,"logs":[]}"#) }
            let log = #"{"notif_id":"\#(id)","type":"failed-push","platform":"ios","token":"*","message":"m","error":"Unregistered"}"#
            return .status(200, body: #"{"success":"ok","counts":1,"logs":[\#(log)]}"#)
        }
        defer { gorush.stop() }
        let client = try GorushClient(
            client: CurlClient(), url: gorush.url, profile: .private, ids: NotificationIDCipher(identity: fixture.identity))
        try await fixture.withNode(
            configure: {
                $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
                $0.feedbackSecret = FeedbackSecret(secret)
            }, endpoints: [GorushEndpoint(client)]
        ) { node async throws in
            #expect(try await node.register(bob) == nil)
            _ = try await node.notify(bob)
            try await node.wait { gorush.requests.contains { !$0.body.isEmpty } }
            let body = try #require(gorush.requests.first { !$0.body.isEmpty }).body
            let id = try #require(Self.id(in: body))
            if byHook {
                try await node.wait { node.node.httpPort != nil && node.count(.notificationAccepted) == 1 }
                let report =
                    #"{"notif_id":"\#(id)","type":"failed-push","platform":"ios","token":"*","message":"m","error":"Unregistered"}"#
                let answer = try await CurlClient().send(
                    HTTPRequest(
                        method: "POST", url: "http://127.0.0.1:\(node.node.httpPort ?? 0)/feedback",
                        headers: [("X-Waku-Push-Secret", secret)], body: Array(report.utf8), timeout: .seconds(60)))
                #expect(answer.status == 200)
            }
            try await node.wait { node.count(.tokenRemoved) == 1 }
            #expect(try await node.notify(bob) == .notRegistered)
        }
    }

    private static func id(in body: [UInt8]) -> String? {
        let object = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: [[String: Any]]]
        return object?["notifications"]?.first?["notif_id"] as? String
    }
}
