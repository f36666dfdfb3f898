import CurlClient
import Foundation
import Logging
import NwakuRelay
import PushClient
import Core
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

/// Dead tokens, and a misconfigured gorush, with processes and sockets.
@Suite(.timeLimit(.minutes(5)))
struct FeedbackFlowTests {
    private static let accessToken = "6f1c1e94-3b5a-4c39-9a61-d7e0b1c2a3f4"
    private static let secret = "c0ffee-c0ffee-c0ffee"
    private let folder: TemporaryFolder
    private let server: KeyFile
    private let bob: KeyFile
    private let gorush: ScriptedGorush

    init() throws {
        folder = try TemporaryFolder()
        server = try KeyFile(in: folder, "id.key")
        bob = try KeyFile(in: folder, "bob.key")
        gorush = try ScriptedGorush()
        try write(Self.secret + "\n", to: folder.path + "/secret")
    }

    /// Answers as gorush does, and remembers the ids of the posted notifications.
    private final class ScriptedGorush: Sendable {
        private struct State {
            var status = 200
            var isDead = false
            var ids: [String] = []
        }

        private let shared = Shared()
        let server: RawHTTPServer

        init() throws {
            server = try RawHTTPServer { [shared] in shared.reply(to: $0) }
        }

        /// State shared by the server's threads and the test.
        private final class Shared: Sendable {
            let state = Mutex(State())

            func reply(to request: RawHTTPServer.Request) -> RawHTTPServer.Reply {
                struct Body: Decodable {
                    struct Entry: Decodable {
                        let id: String

                        enum CodingKeys: String, CodingKey {
                            case id = "notif_id"
                        }
                    }
                    let notifications: [Entry]
                }
                let ids = (try? JSONDecoder().decode(Body.self, from: Data(request.body)))?.notifications.map(\.id) ?? []
                return state.withLock { state in
                    guard state.status == 200 else { return .status(state.status) }
                    state.ids += ids
                    let logs = state.isDead ? ids.map(FeedbackFlowTests.failure).joined(separator: ",") : ""
                    return .status(200, body: #"{"success":"ok","counts":\#(ids.count),"logs":[\#(logs)]}"#)
                }
            }
        }

        var ids: [String] { shared.state.withLock { $0.ids } }
        func answer(status: Int = 200, isDead: Bool = false) {
            shared.state.withLock { state in
                state.status = status
                state.isDead = isDead
            }
        }
    }

    private static func failure(_ id: String) -> String {
        #"{"notif_id":"\#(id)","type":"failed-push","platform":"ios","token":"****","message":"m","error":"Unregistered"}"#
    }

    private func start() async throws -> Daemon {
        try await Daemon.start([
            "--identity", server.path, "--data", folder.path + "/data", "--gorush", gorush.server.url, "--feedback-secret-file",
            folder.path + "/secret",
        ])
    }

    private func client(_ daemon: Daemon, _ command: String, _ arguments: String...) async throws -> Ended {
        try await run(["client", command, "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "60s"] + arguments)
    }

    private func register(_ daemon: Daemon, version: Int) async throws -> Ended {
        try await client(
            daemon, "register", "--identity", bob.path, "--device-token", "5ec2e7", "--apn-topic", "app", "--installation", "phone",
            "--access-token", Self.accessToken, "--version", "\(version)")
    }

    /// Sends a request with a known access token: the program would query first, and get no answer.
    private func request(_ daemon: Daemon) async throws -> PushNotificationReport.ErrorType? {
        let watch = NwakuStoreWatch(
            configuration: NwakuStoreWatch.Configuration(
                address: try NodeAddress(daemon.relayURL), pubsubTopics: [.statusDefault], startTime: .now() - .seconds(2)),
            client: CurlClient(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let client = StatusPushClient(identity: .generate(), relay: watch)
        let running = Task { await client.run() }
        defer { running.cancel() }
        let entry = PushNotification(
            accessToken: AccessToken(Self.accessToken), chatID: Shake256.hash64([1]), publicKey: KeyHash(of: bob.key.publicKey).bytes,
            installationID: InstallationID("phone"), kind: .message, author: Shake256.hash64([2]))
        let reports = try await client.notify([entry], messageID: randomBytes(32), at: server.key.publicKey, timeout: .seconds(60))
        return try #require(reports.first).error
    }

    /// Until gorush was fast enough for the answer.
    private func notify(_ daemon: Daemon, messageID: String) async throws -> Ended {
        var last: Ended?
        try await eventually {
            let ended = try await client(daemon, "notify", "--registrant", bob.publicKey, "--message-id", messageID)
            last = ended
            return !ended.errors.contains("INTERNAL_ERROR")
        }
        return try #require(last)
    }

    @Test(arguments: [false, true])
    func aDeadTokenEndsTheRegistration(byHook: Bool) async throws {
        defer { gorush.server.stop() }
        let first = try await start()
        #expect(try await register(first, version: 7).status == 0)
        gorush.answer(isDead: !byHook)
        let notified = try await notify(first, messageID: "01")
        #expect(notified.status == (byHook ? 0 : 65), "\(notified.errors)")
        gorush.answer()
        if byHook {
            let id = try #require(gorush.ids.first)
            let hook = HTTPRequest(
                method: "POST", url: first.httpURL + "/feedback", headers: [("Authorization", "Bearer \(Self.secret)")],
                body: Array(Self.failure(id).utf8), timeout: .seconds(60))
            #expect(try await CurlClient().send(hook).status == 200)
        }
        try await eventually { try await request(first) == .notRegistered }
        let stopped = await first.stop()
        #expect(stopped.status == 0)
        #expect(!stopped.errors.contains(Self.secret))

        let second = try await start()
        #expect(try await request(second) == .notRegistered)
        #expect(try await register(second, version: 7).failure == "the server refused: VERSION_MISMATCH")
        #expect(try await register(second, version: 8).status == 0)
        #expect(try await notify(second, messageID: "02").status == 0)
        #expect(await second.stop().status == 0)
    }

    /// With wrong credentials or a wrong URL notifications are kept, the error is reported, and they are delivered after the correction.
    @Test(arguments: [401, 403, 404])
    func anOperatorsMistakeDropsNothing(status: Int) async throws {
        defer { gorush.server.stop() }
        let daemon = try await start()
        #expect(try await register(daemon, version: 1).status == 0)
        gorush.answer(status: status)
        let notified = try await client(daemon, "notify", "--registrant", bob.publicKey, "--message-id", "01")
        #expect(notified.failure == "not all devices were notified: INTERNAL_ERROR")
        try await eventually { try await daemon.get("/readyz").status == 503 }
        let readiness = String(decoding: try await daemon.get("/readyz").body, as: UTF8.self)
        #expect(readiness.hasPrefix("gorush: unavailable, 1 waiting: status \(status): "), "\(readiness)")
        #expect(gorush.ids.isEmpty)
        gorush.answer()
        try await eventually { gorush.ids.count == 1 }
        try await eventually { try await daemon.get("/readyz").status == 200 }
        let stopped = await daemon.stop()
        #expect(stopped.errors.contains(" error gorush can't be used as configured "))
        #expect(stopped.errors.contains(" warning gorush unavailable "))
        #expect(stopped.errors.contains(" info gorush available again"))
    }

    @Test(arguments: ["short", "with a blank in it, and long", "with:colon:in:it:and:long", String(repeating: "x", count: 257), ""])
    func secretsThatGorushCannotSend(secret: String) async throws {
        defer { gorush.server.stop() }
        try write(secret, to: folder.path + "/bad")
        let ended = try await run(
            "serve", "--identity", server.path, "--data", folder.path + "/data", "--feedback-secret-file", folder.path + "/bad")
        #expect(ended.status == 65)
        #expect(ended.failure?.hasPrefix("secret file ") == true, "\(ended.errors)")
    }

    @Test(arguments: ["0", "-1", "100000001"])
    func limitsOfTheOutbox(limit: String) async throws {
        defer { gorush.server.stop() }
        let ended = try await run("serve", "--identity", server.path, "--data", folder.path + "/data", "--outbox-limit=\(limit)")
        #expect(ended.status == 64)
        #expect(ended.failure?.hasPrefix("--outbox-limit must be") == true, "\(ended.errors)")
    }
}
