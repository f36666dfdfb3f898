import CurlClient
import Foundation
import TestSupport
import Testing

/// A daemon's configuration file, reloaded on SIGHUP.
@Suite(.timeLimit(.minutes(5)))
struct ConfigurationReloadTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private var path: String { folder.path + "/waku-push.yaml" }

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    @Test func sighupAppliesSettingsThatNeedNoRestart() async throws {
        let data = folder.path + "/data"
        let gorush = try RawHTTPServer { _ in .status(404) }
        defer { gorush.stop() }
        func text(_ more: String) -> String { "identity: \(key.path)\ndata: \(data)\n\(more)\ngorush: \(gorush.url)\n" }
        try write(text("log-level: warning"), to: path)
        let daemon = try await Daemon.start(["--config", path])
        #expect(!daemon.process.errors.contains("node started"))

        try write(text("log-level: info\nlimit: {requests: 1/s}\nmax-request-age: 5m"), to: path)
        daemon.process.send(SIGHUP)
        try await eventually { daemon.process.errors.contains("options need a restart") || !daemon.process.isRunning }
        #expect(daemon.process.errors.contains("configuration reloaded changed=\"log-level, limit\""), "\(daemon.process.errors)")
        #expect(daemon.process.errors.contains("options=max-request-age"))

        try write(text("log-level: nonsense"), to: path)
        daemon.process.send(SIGHUP)
        try await eventually {
            daemon.process.errors.contains("failed to reload configuration; nothing changed") || !daemon.process.isRunning
        }
        #expect(daemon.process.errors.contains(":3: log-level has an invalid value for --log-level"))
        #expect(try await daemon.get("/healthz").status == 200)
        func alarm() async throws -> Bool {
            let metrics = String(decoding: try await daemon.get("/metrics").body, as: UTF8.self)
            return metrics.contains("waku_push_alarm_active{alarm=\"reload_failed\"} 1.0")
        }
        #expect(try await alarm())
        try write(text(""), to: path)
        daemon.process.send(SIGHUP)
        try await eventually { try await !alarm() }

        // The file serves admin too.
        #expect(try await run(["admin", "status", "--config", path.replacing("waku-push.yaml", with: "admin.yaml")]).status == 65)
        try write(text(""), to: folder.path + "/admin.yaml")
        #expect(try await run(["admin", "status", "--config", folder.path + "/admin.yaml"]).status == 0)
        #expect(await daemon.stop().status == 0)
    }

    /// A reload changes the notifications that are posted to gorush, also when another change needs a restart.
    @Test func sighupAppliesNotifications() async throws {
        let gorush = try RawHTTPServer { _ in .status(200, body: #"{"success":"ok","counts":1,"logs":[]}"#) }
        defer { gorush.stop() }
        let data = folder.path + "/data"
        func text(_ more: String, topics: String = "") -> String {
            """
            identity: \(key.path)
            data: \(data)
            gorush-endpoints:
              - {name: one, url: "\(gorush.url)"\(topics)}
            \(more)

            """
        }
        try write(text(""), to: path)
        let daemon = try await Daemon.start(["--config", path])
        let bob = try KeyFile(in: folder, "bob.key")
        let register = [
            "client", "register", "--relay", daemon.relayURL, "--server", key.publicKey, "--identity", bob.path, "--device-token", "t",
            "--apn-topic", "im.status.ethereum",
        ]
        #expect(try await run(register).status == 0)
        func posted() async throws -> String {
            let notify = [
                "client", "notify", "--relay", daemon.relayURL, "--server", key.publicKey, "--registrant", bob.publicKey,
            ]
            #expect(try await run(notify).status == 0)
            return String(decoding: try #require(gorush.requests.last).body, as: UTF8.self)
        }
        let before = try await posted()
        #expect(!before.contains("expiration") && before.contains(#""sound":"default""#))

        func reload(_ text: String, _ log: String) async throws {
            try write(text, to: path)
            daemon.process.send(SIGHUP)
            try await eventually { daemon.process.errors.contains(log) || !daemon.process.isRunning }
            #expect(daemon.process.errors.contains(log), "\(daemon.process.errors)")
        }
        try await reload(text("notifications: {ttl: remaining, sound: ping.caf}"), "configuration reloaded changed=notifications")
        let after = try await posted()
        #expect(after.contains(#""expiration":"#) && after.contains(#""sound":"ping.caf""#))

        try await reload(text("notifications: {ttl: never}"), ":5: ttl must be remaining")
        #expect(try await posted().contains(#""sound":"ping.caf""#))

        try await reload(
            text("notifications: {endpoints: one, sound: pong.caf}", topics: ", apn-topics: [im.status.ethereum]"),
            "options=gorush-endpoints")
        let last = try await posted()
        #expect(last.contains(#""sound":"pong.caf""#) && !last.contains("expiration"))
        #expect(await daemon.stop().status == 0)
    }

    /// The node selects a server by the rules of its start. So servers in another order must not replace each other, however often the file is read.
    @Test func endpointsInAnotherOrderWaitForARestart() async throws {
        let (apple, google) = (try RawHTTPServer(reply: answer), try RawHTTPServer(reply: answer))
        defer {
            apple.stop()
            google.stop()
        }
        let endpoints = [
            #"  - {name: apple, url: "\#(apple.url)", platforms: apn}"#, #"  - {name: google, url: "\#(google.url)", platforms: firebase}"#,
        ]
        func text(_ endpoints: [String]) -> String {
            "identity: \(key.path)\ndata: \(folder.path)/data\ngorush-endpoints:\n\(endpoints.joined(separator: "\n"))\n"
        }
        try write(text(endpoints), to: path)
        let daemon = try await Daemon.start(["--config", path])
        try write(text(endpoints.reversed()), to: path)
        for count in 1...2 {
            daemon.process.send(SIGHUP)
            try await eventually {
                daemon.process.errors.components(separatedBy: "options=gorush-endpoints").count == count + 1 || !daemon.process.isRunning
            }
        }
        let bob = try KeyFile(in: folder, "bob.key")
        let to = ["--relay", daemon.relayURL, "--server", key.publicKey]
        #expect(
            try await run(
                ["client", "register", "--identity", bob.path, "--device-token", "t", "--apn-topic", "im.status.ethereum"] + to
            ).status == 0)
        #expect(try await run(["client", "notify", "--registrant", bob.publicKey] + to).status == 0)
        func hasPosts(_ server: RawHTTPServer) -> Bool { server.requests.contains { $0.head.hasPrefix("POST") } }
        #expect(hasPosts(apple) && !hasPosts(google))
        #expect(await daemon.stop().status == 0)
    }

    private func answer(_ request: RawHTTPServer.Request) -> RawHTTPServer.Reply {
        .status(200, body: #"{"success":"ok","counts":1,"logs":[]}"#)
    }
}
