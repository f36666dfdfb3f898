import NodeAPI
import CurlClient
import Foundation
import Delivery
import NodeAssembly
import NodeMetrics
import PushClient
import PushNode
import Core
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("Feedback about tokens, by gorush's hook and in its replies")
struct FeedbackTests {
    private static let secret = "0123456789-the-secret"

    let fixture: NodeFixture
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    /// A node and its HTTP port.
    private struct Served: Sendable {
        let node: RunningNode
        let url: String
        private let client = CurlClient()

        init(node: RunningNode, url: String) {
            self.node = node
            self.url = url
        }

        func post(
            _ body: String, headers: [(String, String)] = [("X-Waku-Push-Secret", FeedbackTests.secret)]
        ) async throws -> Int {
            let request = HTTPRequest(
                method: "POST", url: url + "/feedback", headers: headers, body: Array(body.utf8), timeout: .seconds(60))
            return try await client.send(request).status
        }

        func tell(_ id: String, _ error: String = "Unregistered") async throws {
            #expect(try await post(FeedbackTests.body(id, error)) == 200)
        }

        func readiness() async throws -> (status: Int, text: String) {
            let response = try await client.send(HTTPRequest(method: "GET", url: url + "/readyz", timeout: .seconds(60)))
            return (response.status, String(decoding: response.body, as: UTF8.self))
        }
    }

    private static func body(_ id: String, _ error: String) -> String {
        #"{"notif_id":"\#(id)","type":"failed-push","platform":"ios","token":"******","message":"m","error":"\#(error)"}"#
    }

    private func withServed(
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, secret: String? = FeedbackTests.secret,
        configure: (inout ServerConfiguration) -> Void = { _ in }, _ body: @escaping @Sendable (Served) async throws -> Void
    ) async throws {
        try await fixture.withNode(
            configure: { configuration in
                configuration.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
                configuration.feedbackSecret = secret.map { FeedbackSecret($0) }
                configure(&configuration)
            }, now: now
        ) { node in
            try await node.wait { node.node.httpPort != nil }
            try await body(Served(node: node, url: "http://127.0.0.1:\(node.node.httpPort ?? 0)"))
        }
    }

    // MARK: Replies

    /// A gorush whose queue is full for its first posts.
    private final class FullGorush: NotificationPosting {
        let attempts = Mutex(0)
        var certificateEnd: Int? { nil }

        func post(_ notifications: [Delivery.Notification]) async -> PostResult {
            let isFull = attempts.withLock { attempts in
                attempts += 1
                return attempts <= 3
            }
            return PostResult(
                outcome: .accepted, postedTokenCount: notifications.count,
                failures: isFull ? notifications.map { PostResult.Failure(notificationID: $0.id, reason: .queueFull) } : [])
        }
    }

    @Test("Notifications that gorush has no room for are retried, and not counted as failures of a push service")
    func fullQueue() async throws {
        try await fixture.withNode(posting: FullGorush()) { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == nil)
            #expect(node.count(.notificationRetried) == 3 && node.count(.notificationAccepted) == 1)
            #expect(node.count(.tokenFailedOtherwise) == 0)
        }
    }

    @Test(
        "A notification whose token fails while its device registers a new one is posted to the new one, and not counted before",
        arguments: StoreEngine.allCases, [TokenVerdict.dead, .doubtful])
    func registeredWhilePosting(engine: StoreEngine, verdict: TokenVerdict) async throws {
        let location = try await engine.location()
        try await fixture.withNode(configure: { $0.store = location }) { [bob] node async throws in
            #expect(try await node.register(bob, token: "former") == nil)
            node.gorush.whilePosting { notifications in
                let isFormer = notifications.contains { $0.deviceToken.revealed == "former" }
                if isFormer { _ = try? await node.register(bob, version: 2, token: "present") }
                node.gorush.answer(.accepted, verdict: isFormer ? verdict : nil)
            }
            // It holds the node, which holds gorush.
            defer { node.gorush.whilePosting { _ in } }
            for _ in 0..<2 { #expect(try await node.notify(bob, messageID: [1]) == nil) }
            #expect(node.gorush.accepted.map(\.deviceToken.revealed) == ["former", "present"])
            #expect(node.count(.notificationAccepted) == 1 && node.count(.notificationRetried) == 1)
            #expect(node.count(.tokenFailureStale) == 1 && node.count(.tokenRemoved) == 0)
        }
    }

    @Test("A dead token that its device registers again while a notification is posted to it ends the new registration")
    func renewedWhilePosting() async throws {
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            node.gorush.answer(.accepted, verdict: .dead)
            node.gorush.whilePosting { _ in
                node.gorush.whilePosting { _ in }
                _ = try? await node.register(bob, version: 2)
            }
            #expect(try await node.notify(bob) == .notRegistered)
            #expect(node.gorush.accepted.count == 2 && node.count(.tokenRemoved) == 1)
        }
    }

    @Test("A notification whose device unregistered and registered again, while its former token failed, is not counted as delivered")
    func unregisteredWhilePosting() async throws {
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob, token: "former") == nil)
            node.gorush.whilePosting { notifications in
                let isFormer = notifications.contains { $0.deviceToken.revealed == "former" }
                if isFormer {
                    _ = try? await node.withClient(bob.identity) { client in
                        try await client.unregister(bob.installationID, version: 2, with: node.server, timeout: .seconds(60))
                    }
                    _ = try? await node.register(bob, version: 3, token: "present")
                }
                node.gorush.answer(.accepted, verdict: isFormer ? .dead : nil)
            }
            defer { node.gorush.whilePosting { _ in } }
            #expect(try await node.notify(bob, messageID: [1]) == .notRegistered)
            #expect(try await node.notify(bob, messageID: [1]) == nil)
            #expect(node.gorush.accepted.map(\.deviceToken.revealed) == ["former", "present"])
        }
    }

    // MARK: The endpoint

    @Test("Without a secret /feedback is disabled")
    func notServed() async throws {
        try await withServed(secret: nil) { served async throws in
            #expect(try await served.post(Self.body("x", "y")) == 404)
        }
    }

    @Test("Only posts with the secret are accepted, by either header")
    func secrets() async throws {
        try await withServed { served async throws in
            // No id of a notification.
            let body = Self.body("00", "Unregistered")
            let expected: [(Int, [(String, String)])] = [
                (401, []), (401, [("Authorization", "Basic \(Self.secret)")]), (403, [("X-Waku-Push-Secret", "")]),
                (403, [("X-Waku-Push-Secret", "wrong")]), (403, [("Authorization", "Bearer \(Self.secret)x")]),
                (200, [("Authorization", "Bearer \(Self.secret)")]), (200, [("authorization", "bearer \(Self.secret)")]),
                (200, [("x-waku-push-secret", Self.secret)]),
            ]
            for (status, headers) in expected { #expect(try await served.post(body, headers: headers) == status, "\(headers)") }
            #expect(served.node.count(.feedbackForbidden) == 5)
            try await served.node.wait { served.node.count(.tokenFailureUnmatched) == 3 }
        }
    }

    @Test("A replaced secret is in force at once, and the former one is refused")
    func replacedSecret() async throws {
        try await withServed { served async throws in
            let other = "another-secret-of-feedback"
            served.node.node.replaceFeedbackSecret(FeedbackSecret(other))
            let body = Self.body("00000000000000000000000000000000", "Unregistered")
            #expect(try await served.post(body) == 403)
            #expect(try await served.post(body, headers: [("X-Waku-Push-Secret", other)]) == 200)
        }
    }

    @Test("Invalid and oversized bodies are refused; failures of unknown notifications change nothing")
    func strangeBodies() async throws {
        try await withServed { [bob] served async throws in
            #expect(try await served.node.register(bob) == nil)
            let deep = String(repeating: "[", count: 20_000)
            for body in [
                "", "x", "{}", "[]", "null", deep, #"{"error":5}"#, #"{"error":""}"#, "\u{0}", #"{"type":"succeeded-push","error":"x"}"#,
            ] {
                #expect(try await served.post(body) == 400, "\(body.prefix(40))")
            }
            #expect(try await served.post(Self.body("x", String(repeating: "e", count: 70_000))) == 413)
            let ids = [
                "", "zz", "00", String(repeating: "a", count: 31), String(repeating: "a", count: 33), String(repeating: "é", count: 16),
            ]
            for id in ids { try await served.tell(id) }
            #expect(try await served.post(#"{"error":"Unregistered"}"#) == 200)
            try await served.node.wait { served.node.count(.tokenFailureUnmatched) == ids.count + 1 }
            #expect(try await served.node.notify(bob) == nil)
        }
    }

    // MARK: Dead tokens

    @Test("A dead token reported by the hook ends the registration, also across a restart; a newer registration works")
    func dead() async throws {
        try await withServed { [bob] served async throws in
            #expect(try await served.node.register(bob, version: 4) == nil)
            #expect(try await served.node.notify(bob) == nil)
            let id = try #require(served.node.gorush.accepted.first?.id)
            // The same twice, as from a gorush that also reports it in its reply.
            for _ in 0..<2 { try await served.tell(id) }
            try await served.node.wait { served.node.count(.tokenRemoved) == 1 }
            #expect(try await served.node.notify(bob) == .notRegistered)
        }
        try await withServed { [bob] served async throws in
            #expect(try await served.node.notify(bob) == .notRegistered)
            #expect(try await served.node.register(bob, version: 4) == .versionMismatch)
            #expect(try await served.node.register(bob, version: 5) == nil)
            #expect(try await served.node.notify(bob) == nil)
        }
    }

    @Test("A failure is matched across a restart, and does not affect a registration that is newer than the notification")
    func stale() async throws {
        try await withServed { [bob] served async throws in
            #expect(try await served.node.register(bob, version: 4) == nil)
            #expect(try await served.node.notify(bob) == nil)
        }
        try await withServed { [bob] served async throws in
            #expect(try await served.node.register(bob, version: 5) == nil)
            try await served.tell(try #require(served.node.gorush.accepted.first?.id))
            try await served.node.wait { served.node.count(.tokenFailureStale) == 1 }
            #expect(try await served.node.notify(bob) == nil)
        }
    }

    @Test("Feedback that arrives before the reply to the post is processed")
    func early() async throws {
        try await withServed { [bob] served async throws in
            #expect(try await served.node.register(bob) == nil)
            served.node.gorush.whilePosting { notifications in
                for notification in notifications { try? await served.tell(notification.id) }
            }
            // It holds the node, which holds gorush.
            defer { served.node.gorush.whilePosting { _ in } }
            #expect(try await served.node.notify(bob) == nil)
            try await served.node.wait { served.node.count(.tokenRemoved) == 1 }
            #expect(try await served.node.notify(bob) == .notRegistered)
        }
    }

    // MARK: Doubtful ones

    /// A clock that can be advanced.
    private final class Clock: Sendable {
        private let offset = Mutex(Duration.zero)

        func advance(by duration: Duration) { offset.withLock { $0 += duration } }
        @Sendable func now() -> Timestamp { .now() + offset.withLock { $0 } }
    }

    @Test("Five consecutive doubtful failures over a day disable a device, counted across restarts, by reply and hook")
    func doubtful() async throws {
        let clock = Clock()
        for round in 1...6 {
            try await withServed(now: clock.now, configure: { $0.maximumRequestAge = .seconds(10 * 86_400) }) { [bob] served async throws in
                if round == 1 { #expect(try await served.node.register(bob) == nil) }
                if round == 6 {
                    #expect(try await served.node.notify(bob) == .notRegistered)
                    return
                }
                let isByReply = round.isMultiple(of: 2)
                served.node.gorush.answer(.accepted, verdict: isByReply ? .doubtful : nil)
                #expect(try await served.node.notify(bob) == nil)
                if !isByReply { try await served.tell(try #require(served.node.gorush.accepted.last?.id), "BadDeviceToken") }
                try await served.node.wait { served.node.count(.tokenDoubtful) == 1 }
                if round == 5 { try await served.node.wait { served.node.count(.tokenDisabled) == 1 } }
            }
            clock.advance(by: .seconds(6 * 3600 + 60))
        }
    }

    @Test("A success resets the count")
    func reset() async throws {
        let clock = Clock()
        try await withServed(now: clock.now, configure: { $0.maximumRequestAge = .seconds(10 * 86_400) }) { [bob] served async throws in
            #expect(try await served.node.register(bob) == nil)
            for round in 1...12 {
                served.node.gorush.answer(.accepted, verdict: round.isMultiple(of: 3) ? nil : .doubtful)
                #expect(try await served.node.notify(bob) == nil)
                clock.advance(by: .seconds(12 * 3600))
            }
            #expect(served.node.count(.tokenDoubtful) == 8)
            #expect(served.node.count(.tokenDisabled) == 0)
        }
    }

    // MARK: The operator's mistake

    @Test("When too many tokens fail alike no device is removed", arguments: [TokenVerdict.dead, .doubtful, .operatorsMistake])
    func guarded(verdict: TokenVerdict) async throws {
        let clients = (0..<12).map { _ in TestClient(of: fixture.identity.publicKey) }
        try await withServed { served async throws in
            for client in clients { #expect(try await served.node.register(client) == nil) }
            served.node.gorush.answer(.accepted, verdict: verdict)
            for (index, client) in clients.enumerated() {
                #expect(try await served.node.notify(client) == (verdict == .dead && index < 9 ? .notRegistered : nil))
            }
            served.node.gorush.answer(.accepted)
            var refused = 0
            for client in clients where try await served.node.notify(client) == .notRegistered { refused += 1 }
            switch verdict {
            case .dead:
                // The first nine are indistinguishable from other dead tokens.
                #expect(refused == 9)
                #expect(served.node.count(.tokenRemoved) == 9)
                #expect(served.node.count(.tokenHeldOff) == 3)
            case .doubtful:
                #expect(refused == 0)
                #expect(served.node.count(.tokenHeldOff) == 3)
            default:
                #expect(refused == 0)
                #expect(served.node.count(.tokenOperatorsMistake) == 12)
            }
        }
    }

    @Test("When too many tokens of a batch fail alike none of its devices is removed")
    func guardedBatch() async throws {
        let clients = (0..<12).map { _ in TestClient(of: fixture.identity.publicKey) }
        try await fixture.withNode { node async throws in
            for client in clients { #expect(try await node.register(client) == nil) }
            let entries = clients.map { client in
                PushNotification(
                    accessToken: client.accessToken, chatID: Shake256.hash64([1]), publicKey: client.keyHash.bytes,
                    installationID: client.installationID, kind: .message, author: Shake256.hash64([2]))
            }
            // From its answer the node learns that gorush takes more than ten in a post: so that all of them go out in one.
            for _ in 0..<2 { #expect(try await node.notify(clients[0]) == nil) }
            node.gorush.answer(.accepted, verdict: .dead)
            let reports = try await node.withClient { try await $0.notify(entries, messageID: [1], at: node.server, timeout: .seconds(60)) }
            #expect(reports.count == 12)
            #expect(node.count(.tokenHeldOff) == 12)
            node.gorush.answer(.accepted)
            for client in clients { #expect(try await node.notify(client) == nil) }
        }
    }

    @Test("Dead tokens of one registrant, however many, do not protect those of others")
    func deadTokensOfOneRegistrant() async throws {
        let stranger = PrivateKey.generate()
        let devices = (1...12).map { number in
            TestClient(of: fixture.identity.publicKey, identity: stranger, installationID: InstallationID("device-\(number)"))
        }
        try await fixture.withNode { [bob] node async throws in
            node.gorush.answer(.accepted, verdict: .dead)
            for client in devices + [bob] {
                #expect(try await node.register(client) == nil)
                #expect(try await node.notify(client) == .notRegistered)
            }
            #expect(node.count(.tokenRemoved) == 13 && node.count(.tokenHeldOff) == 0)
            for client in devices + [bob] { #expect(try await node.notify(client) == .notRegistered) }
        }
    }

    /// A gorush that retries reports each attempt.
    @Test("Repeated failures of one token do not protect others")
    func repeatedByTheHook() async throws {
        let alice = TestClient(of: fixture.identity.publicKey)
        try await withServed { [bob] served async throws in
            for client in [bob, alice] {
                #expect(try await served.node.register(client) == nil)
                #expect(try await served.node.notify(client) == nil)
            }
            let ids = served.node.gorush.accepted.map(\.id)
            #expect(ids.count == 2)
            for _ in 0..<20 { try await served.tell(ids[0], "BadDeviceToken") }
            try await served.tell(ids[1], "BadDeviceToken")
            try await served.node.wait { served.node.count(.tokenDoubtful) == 2 && served.node.count(.tokenFailureRepeated) == 19 }
            #expect(served.node.count(.tokenHeldOff) == 0)
        }
    }

    // MARK: gorush failing

    @Test(
        "While the circuit breaker is open requests are answered at once, readiness reports it, and no notification is lost or reordered",
        arguments: [false, true])
    func breaker(restarts: Bool) async throws {
        fixture.gorush.answer(.failed(retryAfter: nil))
        let ids = (1...5).map { [UInt8($0)] }
        // Nobody waits for the deadline: it is far.
        try await withServed { [bob] served async throws in
            #expect(try await served.node.register(bob) == nil)
            for id in ids { #expect(try await served.node.notify(bob, messageID: id) == .internalError) }
            #expect(served.node.count(.gorushOpened) >= 1)
            let readiness = try await served.readiness()
            #expect(readiness.status == 503)
            #expect(readiness.text == "gorush: unavailable, 5 waiting: as the test says\n")
            if !restarts {
                served.node.gorush.answer(.accepted)
                try await served.node.wait { served.node.gorush.accepted.count == 5 }
                #expect(try await served.readiness().status == 200)
            }
        }
        fixture.gorush.answer(.accepted)
        try await withServed { [bob] served async throws in
            try await served.node.wait { served.node.gorush.accepted.count == 5 }
            let expected = ids.map { String(DeliveryID(messageID: $0, key: bob.key).hex.prefix(32)) }
            #expect(served.node.gorush.accepted.map(\.id) == expected)
            for id in ids { #expect(try await served.node.notify(bob, messageID: id) == nil) }
            #expect(served.node.gorush.accepted.count == 5)
        }
    }
}
