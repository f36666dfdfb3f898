import CurlClient
import Delivery
import Foundation
import NodeMetrics
import Core
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

/// Replies of gorush 1.12 (2019) with `core.sync: true`, composed from its source, and how a node handles them.
///
/// - `gorush/server.go`, `pushHandler`: status 200 and `gin.H{"success": "ok", "counts": counts, "logs": logs}`, whose keys gin sorts; 400 with
///   `code` and `message` otherwise. `VersionMiddleware` adds the header.
/// - `gorush/log.go`, `LogPushEntry`: `type`, `platform`, `token`, `message`, `error`, in this order. There is no `notif_id` yet: `hideToken` leaves
///   the middle of the token, by which a failure is matched. Later versions have `notif_id` as the first field.
/// - `gorush/notification_apns.go`, `PushToIOS`: `error` is the `reason` of APNs: `Unregistered` of its status 410, `BadDeviceToken` of 400,
///   `InternalServerError` of 500.
/// - `gorush/notification_fcm.go`, `PushToAndroid`: `error` is the text of go-fcm's error.
@Suite("A gorush of 2019")
struct RecordedGorushTests {
    private static let token = "a9d0ed10e9cfd022a61cb08753f49c5a0b0dfb784697bf9f9d750a1003da19c7"

    let fixture: NodeFixture
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    /// Like `hideToken(token, 10)`.
    private static func hidden(_ token: String) -> String {
        let stars = String(repeating: "*", count: 10)
        return token.replacingOccurrences(of: token.suffix(10), with: stars).replacingOccurrences(of: token.prefix(10), with: stars)
    }

    private static func reply(_ platform: String, _ error: String?, id: String? = nil) -> RawHTTPServer.Reply {
        let named = id.map { #""notif_id":"\#($0)","# } ?? ""
        let log = error.map {
            #"{\#(named)"type":"failed-push","platform":"\#(platform)","token":"\#(hidden(token))","message":"New message in Messenger","error":"\#($0)"}"#
        }
        return .status(
            200, headers: ["Content-Type: application/json; charset=utf-8", "X-Gorush-Version: 1.12.0"],
            body: #"{"counts":1,"logs":[\#(log ?? "")],"success":"ok"}"#)
    }

    private static func id(of request: RawHTTPServer.Request) -> String? {
        let body = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: [[String: Any]]]
        return body?["notifications"]?.first?["notif_id"] as? String
    }

    private func withNode(
        _ platform: Platform, _ error: String, isNamed: Bool = false, isDead: Bool = false,
        _ body: @escaping @Sendable (RunningNode) async throws -> Void
    ) async throws {
        let server = try RawHTTPServer { request in
            Self.reply(platform == .apn ? "ios" : "android", error, id: isNamed ? Self.id(of: request) : nil)
        }
        defer { server.stop() }
        let gorush = try GorushClient(client: CurlClient(), url: server.url)
        try await fixture.withNode(posting: gorush) { [bob] node async throws in
            #expect(try await node.register(bob, token: Self.token, platform: platform) == nil)
            #expect(try await node.notify(bob) == (isDead ? .notRegistered : nil))
            try await body(node)
        }
    }

    @Test(
        "A dead token ends the registration, by the failure's notif_id and by the masked token",
        arguments: [(Platform.apn, "Unregistered"), (.firebase, "unregistered device")], [true, false])
    func deadTokens(reply: (platform: Platform, error: String), isNamed: Bool) async throws {
        try await withNode(reply.platform, reply.error, isNamed: isNamed, isDead: true) { [bob] node async throws in
            try await node.wait { node.count(.tokenRemoved) == 1 }
            #expect(node.count(.tokenDead) == 1)
            #expect(try await node.notify(bob) == .notRegistered)
        }
    }

    @Test(
        "A doubtful token is counted, and the device stays registered",
        arguments: [
            (Platform.apn, "BadDeviceToken"), (.firebase, "invalid registration token"), (.firebase, "mismatched sender id"),
        ])
    func doubtfulTokens(platform: Platform, error: String) async throws {
        try await withNode(platform, error) { [bob] node async throws in
            try await node.wait { node.count(.tokenDoubtful) == 1 }
            #expect(node.count(.tokenRemoved) == 0)
            #expect(try await node.notify(bob) == nil)
        }
    }

    @Test(
        "A failing push service does not affect the token",
        arguments: [(Platform.apn, "InternalServerError"), (.firebase, "internal server error"), (.firebase, "timeout")])
    func serverErrors(platform: Platform, error: String) async throws {
        try await withNode(platform, error) { [bob] node async throws in
            try await node.wait { node.count(.tokenFailedOtherwise) == 1 }
            #expect(node.count(.tokenDoubtful) + node.count(.tokenDead) == 0)
            #expect(try await node.notify(bob) == nil)
            let lost = await node.node.observation.pageSource.status([]).losses
            #expect(lost.map(\.name) == [Counter.tokenFailedOtherwise.name])
        }
    }

    @Test(
        "A notification that is too long is lost, and not counted as a failure of the push service",
        arguments: [(Platform.apn, "PayloadTooLarge"), (.firebase, "Android message is too big")])
    func longMessages(platform: Platform, error: String) async throws {
        try await withNode(platform, error) { [bob] node async throws in
            try await node.wait { node.count(.messageFailed) == 1 }
            #expect(node.count(.tokenFailedOtherwise) + node.count(.tokenDoubtful) + node.count(.tokenDead) == 0)
            #expect(try await node.notify(bob) == nil)
            let lost = await node.node.observation.pageSource.status([]).losses
            #expect(lost.map(\.name) == [Counter.messageFailed.name])
        }
    }

    /// A port without a listener, until one starts.
    private final class AbsentGorush: NotificationPosting {
        var certificateEnd: Int? { nil }
        private let client: Mutex<GorushClient>
        private let posts = Mutex(0)

        init(_ client: GorushClient) { self.client = Mutex(client) }

        var postCount: Int { posts.withLock(\.self) }
        func appear(as client: GorushClient) { self.client.withLock { $0 = client } }

        func post(_ notifications: [Delivery.Notification]) async -> PostResult {
            let result = await client.withLock(\.self).post(notifications)
            posts.withLock { $0 += 1 }
            return result
        }
    }

    /// Answers neither posts nor health checks, until it works.
    private final class StartingGorush: NotificationPosting {
        var certificateEnd: Int? { nil }
        private let works = Mutex(false)

        func start() { works.withLock { $0 = true } }
        func stop() { works.withLock { $0 = false } }
        func healthFailure() async -> String? { works.withLock(\.self) ? nil : "connection refused" }
        func post(_ notifications: [Delivery.Notification]) async -> PostResult {
            result(works.withLock(\.self) ? .accepted : .failed(retryAfter: nil), nil, notifications)
        }
    }

    @Test("A node whose gorush does not answer at the start is not ready until it does, without a notification", arguments: [false, true])
    func readiness(posts: Bool) async throws {
        let gorush = StartingGorush()
        try await fixture.withNode(posting: gorush) { [bob] node async throws in
            try await node.wait { node.node.obstacles == ["gorush: does not answer: connection refused"] }
            #expect(try await node.register(bob, token: Self.token) == nil)
            gorush.start()
            if posts { #expect(try await node.notify(bob) == nil) }
            try await node.wait { node.node.obstacles.isEmpty }
        }
    }

    @Test("While nothing waits, health checks show whether a gorush that was unavailable works again")
    func idleRecovery() async throws {
        let gorush = StartingGorush()
        gorush.start()
        try await fixture.withNode(posting: gorush) { [bob] node async throws in
            #expect(try await node.register(bob, token: Self.token) == nil)
            #expect(try await node.notify(bob) == nil)
            gorush.stop()
            #expect(try await node.notify(bob) == .internalError)
            #expect(await node.node.delivery.drop(nil).count == 1)
            try await node.wait { node.node.obstacles == ["gorush: does not answer: connection refused"] }
            #expect(node.node.base.alarms.isActive(.gorushGivenUp))
            gorush.start()
            try await node.wait { node.node.obstacles.isEmpty && node.node.delivery.breakerState == "closed" }
            #expect(!node.node.base.alarms.isActive(.gorushGivenUp))
            #expect(try await node.notify(bob) == nil)
        }
    }

    @Test("Posts to an unreachable gorush are retried, and each notification is delivered once")
    func absent() async throws {
        let server = try RawHTTPServer { _ in Self.reply("ios", nil) }
        defer { server.stop() }
        // Its port is free again, and refuses connections.
        let gone = try RawHTTPServer { _ in .hang }
        gone.stop()
        let gorush = AbsentGorush(try GorushClient(client: CurlClient(), url: gone.url))
        try await fixture.withNode(posting: gorush) { [bob] node async throws in
            #expect(try await node.register(bob, token: Self.token) == nil)
            let messageID = randomBytes(32)
            #expect(try await node.notify(bob, messageID: messageID) == .internalError)
            #expect(gorush.postCount >= 3)
            #expect(node.node.obstacles.contains { $0.contains("gorush: unavailable") })
            gorush.appear(as: try GorushClient(client: CurlClient(), url: server.url))
            try await node.wait { node.count(.notificationAccepted) == 1 }
            #expect(server.requests.count == 1)
            #expect(try await node.notify(bob, messageID: messageID) == nil)
        }
    }
}
