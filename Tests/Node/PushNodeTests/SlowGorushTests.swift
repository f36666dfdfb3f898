import CurlClient
import Delivery
import Foundation
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushClient
import PushNode
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

/// A gorush with `core.sync: true`, like its `pushHandler` and `queueNotification`: it processes notifications one at a time, answers after the
/// last, and continues if the caller disconnects. It can be suspended, as by SIGSTOP: connections are accepted, but not answered.
private final class SyncGorush: Sendable {
    private struct State {
        var notified: [String: Int] = [:]
        var collapseIDs: Set<String> = []
        var postSizes: [Int] = []
    }

    private let state = Mutex(State())
    private let isStopped = Mutex(false)
    /// The state of its only worker.
    private let worker = NSCondition()

    /// How often each device was notified, by its token.
    var notified: [String: Int] { state.withLock { $0.notified } }
    var collapseIDs: Set<String> { state.withLock { $0.collapseIDs } }
    var postSizes: [Int] { state.withLock { $0.postSizes } }

    func stop() {
        worker.withLock { isStopped.withLock { $0 = true } }
    }

    func resume() {
        worker.withLock {
            isStopped.withLock { $0 = false }
            worker.broadcast()
        }
    }

    /// On the thread of the connection.
    func reply(to request: RawHTTPServer.Request, timePerNotification: TimeInterval) -> RawHTTPServer.Reply {
        guard let object = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any],
            let notifications = object["notifications"] as? [[String: Any]]
        else { return .status(400) }
        state.withLock { $0.postSizes.append(notifications.count) }
        for notification in notifications {
            worker.lock()
            while isStopped.withLock(\.self) { worker.wait() }
            Thread.sleep(forTimeInterval: timePerNotification)
            worker.unlock()
            let token = (notification["tokens"] as? [String])?.first ?? ""
            state.withLock { state in
                state.notified[token, default: 0] += 1
                if let id = notification["collapse_id"] as? String { state.collapseIDs.insert(id) }
            }
        }
        return .status(200, body: #"{"counts":\#(notifications.count),"logs":[],"success":"ok"}"#)
    }
}

/// Answers when a test tells it to, notification by notification.
private final class GatedGorush: NotificationPosting {
    var certificateEnd: Int? { nil }
    let held: KeyHash
    private let limits = AsyncStream.makeStream(of: Void.self)

    init(holding held: KeyHash) {
        self.held = held
    }

    func open() { limits.continuation.finish() }

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        guard notifications.contains(where: { $0.registrant == held }) else { return result(.failed(retryAfter: nil), nil, notifications) }
        for await _ in limits.stream {}
        return result(.accepted, nil, notifications)
    }
}

/// It is unknown whether gorush has received a post, so a post is not repeated before it is answered.
@Suite("A slow gorush", .timeLimit(.minutes(5)))
struct SlowGorushNodeTests {
    let fixture: NodeFixture

    init() throws {
        fixture = try NodeFixture()
    }

    private func registered(_ count: Int, at node: RunningNode) async throws -> [TestClient] {
        var clients: [TestClient] = []
        for index in 0..<count {
            let client = TestClient(of: node.server)
            #expect(try await node.register(client, token: "token-\(index)") == nil)
            clients.append(client)
        }
        return clients
    }

    /// One request for all of them.
    private func notify(_ clients: [TestClient], at node: RunningNode, messageID: [UInt8]) async throws -> [PushNotificationReport] {
        let entries = clients.map { client in
            PushNotification(
                accessToken: client.accessToken, chatID: Shake256.hash64([1]), publicKey: client.keyHash.bytes,
                installationID: client.installationID, kind: .message, author: Shake256.hash64([2]))
        }
        return try await node.withClient { try await $0.notify(entries, messageID: messageID, at: node.server, timeout: .seconds(60)) }
    }

    @Test("60 devices at 100 ms each are notified once, and reports do not wait for that")
    func sixtyDevices() async throws {
        let gorush = SyncGorush()
        let server = try RawHTTPServer { gorush.reply(to: $0, timePerNotification: 0.1) }
        defer { server.stop() }
        let messageID = randomBytes(32)
        let client = try GorushClient(client: CurlClient(), url: server.url)
        try await fixture.withNode(configure: { $0.awaitLimit = .seconds(2) }, posting: client) { node async throws in
            let clients = try await registered(60, at: node)
            let reports = try await notify(clients, at: node, messageID: messageID)
            #expect(reports.contains { $0.error == .internalError })
            try await node.wait { node.count(.notificationAccepted) == 60 }
            #expect(gorush.notified.count == 60)
            #expect(gorush.notified.values.allSatisfy { $0 == 1 })
            #expect(gorush.collapseIDs.count == 60)
            #expect(gorush.postSizes.allSatisfy { $0 <= 10 })
            // The same request again: all were notified, and are not notified again.
            #expect(try await notify(clients, at: node, messageID: messageID).allSatisfy { $0.error == nil })
            #expect(gorush.notified.values.allSatisfy { $0 == 1 })
        }
    }

    @Test("A gorush that is suspended and resumed notifies each device once; meanwhile it is reported as slow, and gets one more post")
    func stopped() async throws {
        let gorush = SyncGorush()
        let server = try RawHTTPServer { gorush.reply(to: $0, timePerNotification: 0.001) }
        defer { server.stop() }
        let client = try GorushClient(client: CurlClient(), url: server.url)
        func configure(_ configuration: inout ServerConfiguration) {
            configuration.awaitLimit = .milliseconds(100)
            configuration.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
        }
        try await fixture.withNode(configure: configure, posting: client) { node async throws in
            let clients = try await registered(20, at: node)
            gorush.stop()
            defer { gorush.resume() }
            #expect(try await notify([clients[0]], at: node, messageID: randomBytes(32)).map(\.error) == [.internalError])
            try await node.wait { node.node.findings.contains { $0.check == "gorush" && $0.verdict == .warn } }
            for client in clients.dropFirst() {
                #expect(try await notify([client], at: node, messageID: randomBytes(32)).map(\.error) == [.internalError])
            }
            // Not before it has answered nothing for ten seconds, longer than a post was once waited for.
            try await node.wait { !node.node.obstacles.isEmpty }
            #expect(node.node.obstacles[0].contains("is slow: 2 posts unanswered for 1"))
            #expect(gorush.postSizes.count == 2)
            #expect(node.count(.gorushSlowed) == 1)
            #expect(node.count(.notificationRetried) == 0)
            let scrape = try await node.scrape()
            #expect(scrape[.slow, #"endpoint="1""#] == 1)
            #expect(scrape[.postsUnanswered, #"endpoint="1""#] == 2)
            #expect(scrape[.postsUnansweredAge, #"endpoint="1""#] ?? 0 >= 10)
            #expect(scrape[.alarmActive, #"alarm="gorush_slow""#] == 1)
            let page = String(decoding: try await node.get("/").body, as: UTF8.self)
            #expect(page.contains("gorush is slow: 2 posts unanswered for 1"))

            gorush.resume()
            try await node.wait { node.count(.notificationAccepted) == 20 }
            #expect(gorush.notified.count == 20)
            #expect(gorush.notified.values.allSatisfy { $0 == 1 })
            try await node.wait { node.node.findings.contains { $0.check == "gorush" && $0.verdict == .ok } }
            #expect(try await node.scrape()[.alarmActive, #"alarm="gorush_slow""#] == 0)
        }
    }

    @Test("After the timeout a notification is posted again with the same collapse_id")
    func afterTheTimeout() async throws {
        let gorush = SyncGorush()
        let server = try RawHTTPServer { gorush.reply(to: $0, timePerNotification: 0.001) }
        defer { server.stop() }
        let client = try GorushClient(client: CurlClient(), url: server.url, timeout: .milliseconds(500))
        try await fixture.withNode(configure: { $0.awaitLimit = .milliseconds(100) }, posting: client) { node async throws in
            let clients = try await registered(1, at: node)
            gorush.stop()
            defer { gorush.resume() }
            #expect(try await notify(clients, at: node, messageID: randomBytes(32)).map(\.error) == [.internalError])
            try await node.wait { gorush.postSizes.count >= 2 }
            gorush.resume()
            // On a busy machine the timeout may pass once more before gorush goes on.
            try await node.wait { node.count(.notificationAccepted) == 1 && gorush.notified["token-0"] == gorush.postSizes.count }
            #expect(gorush.collapseIDs.count == 1)
        }
    }

    @Test("Unanswered notifications stay in the outbox at a stop, and are posted again after the start with the same collapse_id")
    func atTheStop() async throws {
        let gorush = SyncGorush()
        let server = try RawHTTPServer { gorush.reply(to: $0, timePerNotification: 0.001) }
        defer { server.stop() }
        let client = try GorushClient(client: CurlClient(), url: server.url)
        gorush.stop()
        defer { gorush.resume() }
        try await fixture.withNode(configure: { $0.awaitLimit = .milliseconds(100) }, posting: client) { node async throws in
            let clients = try await registered(1, at: node)
            #expect(try await notify(clients, at: node, messageID: randomBytes(32)).map(\.error) == [.internalError])
            #expect(gorush.postSizes == [1])
        }
        gorush.resume()
        try await fixture.withNode(posting: client) { node async throws in
            try await node.wait { node.count(.notificationAccepted) == 1 && gorush.notified["token-0"] == 2 }
        }
        #expect(gorush.collapseIDs.count == 1)
    }

    @Test("While the circuit breaker is open, requests whose post is unanswered keep waiting, others do not")
    func givenUpMeanwhile() async throws {
        let (bob, carol) = (TestClient(of: fixture.identity.publicKey), TestClient(of: fixture.identity.publicKey))
        let gorush = GatedGorush(holding: bob.keyHash)
        // No answer is caused by a deadline, however slow the machine is.
        try await fixture.withNode(configure: { $0.awaitLimit = .seconds(120) }, posting: gorush) { node async throws in
            for client in [bob, carol] { #expect(try await node.register(client) == nil) }
            async let report = node.notify(bob)
            try await node.wait { node.count(.notificationQueued) == 1 }
            // Its posts fail until the circuit breaker opens; then the request is answered.
            #expect(try await node.notify(carol) == .internalError)
            try await node.wait { node.count(.gorushOpened) == 1 }
            gorush.open()
            #expect(try await report == nil)
        }
    }
}
