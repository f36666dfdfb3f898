import Core
import Foundation
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

/// `client listen` beside a running daemon without gorush, as in the README.
@Suite(.timeLimit(.minutes(5)))
struct ListenTests {
    private let folder: TemporaryFolder
    private let server: KeyFile
    private let bob: KeyFile
    private let port: UInt16
    private var vapidFile: String { folder.path + "/vapid.key" }
    private var desktop: String { folder.path + "/desktop" }

    private struct Event: Decodable {
        struct Content: Decodable {
            let type: String?
            let id: String
        }
        let event: String
        let nodeOptions: String?
        let content: Content?
        let status: String?
    }

    /// `client listen --json`, and its events so far.
    private struct Listener {
        let process: ChildProcess

        var events: [Event] { process.lines.compactMap { try? JSONDecoder().decode(Event.self, from: Data($0.utf8)) } }
        var notifications: [Event.Content] { events.compactMap(\.content) }

        func waitFor(_ name: String, count: Int = 1) async throws {
            try await eventually { events.count { $0.event == name } >= count || !process.isRunning }
            #expect(events.count { $0.event == name } >= count, "\(process.errors)")
        }

        func stop() async {
            process.send(SIGTERM)
            #expect(await process.status == 0)
        }
    }

    init() throws {
        folder = try TemporaryFolder()
        server = try KeyFile(in: folder, "id.key")
        bob = try KeyFile(in: folder, "bob.key")
        port = try freePort()
    }

    private func prepare(_ vapid: String, _ arguments: String...) async throws -> Ended {
        try await run(
            ["client", "listen", "--folder", desktop, "--listen", "127.0.0.1:\(port)", "--vapid", vapid, "--prepare"] + arguments)
    }

    private func listen(_ arguments: String...) async throws -> Listener {
        let listener = Listener(
            process: try ChildProcess(
                ["client", "listen", "--folder", desktop, "--listen", "127.0.0.1:\(port)", "--json"] + arguments, limit: .seconds(240)))
        try await listener.waitFor("listening")
        return listener
    }

    private func startDaemon() async throws -> Daemon {
        try await Daemon.start([
            "--identity", server.path, "--data", folder.path + "/data", "--gorush", "none", "--web-push", "--web-push-key", vapidFile,
            "--web-push-contact", "mailto:operator@example.org", "--web-push-allow", "127.0.0.1", "--web-push-ca",
            desktop + "/authority.pem", "--log-level", "trace",
        ])
    }

    private func register(_ daemon: Daemon, _ vapid: String, version: Int) async throws -> Ended {
        try await run(
            "client", "register", "--relay", daemon.relayURL, "--timeout", "60s", "--server", "\(server.publicKey),vapid=\(vapid)",
            "--identity", bob.path, "--installation", "bobs-desktop", "--version", "\(version)", "--web-push",
            desktop + "/subscription.json")
    }

    /// The finding of `doctor --test-push`.
    private func test(_ daemon: Daemon) async throws -> String? {
        struct Finding: Decodable { let check, text: String }
        let ended = try await run("doctor", "--data", folder.path + "/data", "--test-push", desktop + "/subscription.json", "--json")
        return try ended.json([Finding].self).first { $0.check == "web push test" }?.text
    }

    private func notify(_ daemon: Daemon) async throws -> Ended {
        try await run(
            "client", "notify", "--relay", daemon.relayURL, "--timeout", "60s", "--server", server.publicKey, "--registrant", bob.publicKey)
    }

    /// A kill between two files leaves such folders.
    @Test func anUnfinishedFolderIsMadeWholeAtTheNextStart() async throws {
        let vapid = try await run("identity", "new-vapid", "--out", vapidFile, "--public-key").output.trimmingCharacters(in: .newlines)
        #expect(try await prepare(vapid).status == 0)
        let files = FileManager.default
        let registered = try #require(files.contents(atPath: desktop + "/subscription.json"))
        let certificate = try #require(files.contents(atPath: desktop + "/certificate.pem"))
        #expect(try await prepare(vapid).status == 0)
        #expect(files.contents(atPath: desktop + "/certificate.pem") == certificate)
        try Data("{}".utf8).write(to: URL(filePath: desktop + "/subscription.json"))
        #expect(try await prepare(vapid).status == 0)
        #expect(files.contents(atPath: desktop + "/subscription.json") == registered)
        try files.removeItem(atPath: desktop + "/subscription.json")
        try files.removeItem(atPath: desktop + "/authority.pem")
        #expect(try await prepare(vapid).status == 0)
        #expect(files.contents(atPath: desktop + "/subscription.json") == registered)
        #expect(files.fileExists(atPath: desktop + "/authority.pem"))
        #expect(files.contents(atPath: desktop + "/certificate.pem") != certificate)
    }

    @Test func receivesNotificationsOfANodeWithoutGorush() async throws {
        let vapid = try await run("identity", "new-vapid", "--out", vapidFile, "--public-key").output.trimmingCharacters(in: .newlines)
        let prepared = try await prepare(vapid, "--json")
        let options = try JSONDecoder().decode(Event.self, from: Data(prepared.output.utf8)).nodeOptions
        #expect(options == "--web-push-allow 127.0.0.1 --web-push-ca \(desktop)/authority.pem", "\(prepared.errors)")
        for name in ["receiver.key", "subscription.json", "certificate.key"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: desktop + "/" + name)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        }
        let first = try await listen()
        // The listener would not know the new subscription.
        let beside = try await prepare(vapid, "--renew")
        #expect(beside.status == 69 && beside.failure?.contains("in use by another client listen") == true, "\(beside.errors)")
        let daemon = try await startDaemon()
        let status = try await run("admin", "status", "--data", folder.path + "/data")
        #expect(status.field("posts to gorush") == "none: the node runs with --gorush none", "\(status.output)")
        let registered = try await register(daemon, vapid, version: 1)
        #expect(registered.status == 0, "\(registered.errors)")
        #expect(try await notify(daemon).status == 0)
        try await first.waitFor("notification")
        #expect(first.notifications.map(\.type) == ["message"])
        #expect(try await test(daemon) == "accepted by the push service with status 201")
        try await first.waitFor("notification", count: 2)
        await first.stop()

        // The subscription stays after a restart, in text as in JSON.
        let second = try ChildProcess(
            ["client", "listen", "--folder", desktop, "--listen", "127.0.0.1:\(port)", "--count", "1"], limit: .seconds(240))
        try await eventually { !second.lines.isEmpty || !second.isRunning }
        #expect(try await notify(daemon).status == 0)
        #expect(await second.status == 0)
        #expect(second.lines.last?.hasPrefix("notification protocol=status id=") == true, "\(second.output)")

        // A new subscription: the node learns from 410 that the former one has gone, and the device registers again.
        #expect(try await prepare(vapid, "--renew").status == 0)
        let third = try await listen()
        #expect(try await notify(daemon).status == 65)
        try await third.waitFor("refused")
        try await eventually {
            try await run("admin", "registrations", "list", "--data", folder.path + "/data").output.contains("unregistered")
        }
        #expect(try await test(daemon) == "accepted by the push service with status 201")
        #expect(
            third.events.count { $0.event == "notification" } == 1 && third.events.contains { $0.event == "refused" && $0.status == "410" })
        #expect(try await register(daemon, vapid, version: 3).status == 0)
        #expect(try await notify(daemon).status == 0)
        try await third.waitFor("notification", count: 2)
        await third.stop()
        let ended = await daemon.stop()
        #expect(ended.status == 0)
        let token = try #require(
            PushSubscription(json: Array(Data(contentsOf: URL(fileURLWithPath: desktop + "/subscription.json"))))?.endpoint)
        #expect(!(ended.errors + third.process.output).contains(token.suffix(32)))
        // At no level does the log name the push service, which may be one person's own, or the device.
        #expect(ended.errors.contains("push service answered outcome=accepted"))
        for name in [":\(port)", "bobs-desktop", KeyHash(of: bob.key.publicKey).hex] { #expect(!ended.errors.contains(name), "\(name)") }
    }

    @Test func refusesWhatDoesNotFitTheFolder() async throws {
        let (vapid, other) = (
            try await run("identity", "new-vapid", "--out", vapidFile, "--public-key").output.trimmingCharacters(in: .newlines),
            try await run("identity", "new-vapid", "--out", folder.path + "/other.key", "--public-key").output
                .trimmingCharacters(in: .newlines)
        )
        #expect(try await prepare(vapid).status == 0)
        let wrongKey = try await prepare(other)
        #expect(wrongKey.status == 64 && wrongKey.failure?.contains("--renew") == true)
        let wrongAddress = try await run("client", "listen", "--folder", desktop, "--public-url", "https://push.example")
        #expect(wrongAddress.status == 64 && wrongAddress.failure?.contains("--renew") == true)
        for arguments in [
            ["--listen", "0.0.0.0:8443"], ["--listen", "127.0.0.1:0"], ["--listen", "push.example:8443"], ["--count", "0"],
            ["--public-url", "http://a.example"],
        ] {
            let ended = try await run(["client", "listen", "--folder", folder.path + "/new", "--prepare"] + arguments)
            #expect(ended.status == 64, "\(arguments): \(ended.errors)")
        }
        let taken = try RawHTTPServer { _ in .status(404) }
        let occupied = try await run(
            "client", "listen", "--folder", folder.path + "/taken", "--listen", "127.0.0.1:\(taken.port)")
        #expect(occupied.status == 69)
        #expect(occupied.failure?.contains("another program uses it. Choose another with --listen") == true, "\(occupied.errors)")
        // It listens on the address that the options of the node allow.
        let local = try await run("client", "listen", "--folder", folder.path + "/local", "--listen", "localhost:\(taken.port)")
        #expect(local.failure?.hasPrefix("can't listen on 127.0.0.1:\(taken.port): another program uses it.") == true, "\(local.errors)")
        let behindProxy = ["--listen", "push.example:8443", "--public-url", "https://push.example", "--prepare"]
        #expect(try await run(["client", "listen", "--folder", folder.path + "/proxy"] + behindProxy).status == 0)
        chmod(desktop + "/receiver.key", 0o644)
        for arguments in [[], ["--renew"]] {
            let open = try await run(
                ["client", "listen", "--folder", desktop, "--listen", "127.0.0.1:\(port)", "--vapid", vapid, "--prepare"] + arguments)
            #expect(open.status == 77 && open.failure?.contains("chmod 600") == true, "\(arguments): \(open.errors)")
        }
    }

    @Test("--renew replaces a damaged key, and says that its VAPID key is lost")
    func renewsWhatIsDamaged() async throws {
        let renew = ["client", "listen", "--folder", desktop, "--listen", "127.0.0.1:\(port)", "--prepare", "--renew"]
        #expect(try await run(renew).status == 0)
        try write("{}", to: desktop + "/receiver.key")
        let ended = try await run(renew)
        #expect(ended.status == 0)
        let lines = ended.errors.split(separator: "\n")
        #expect(lines.count == 2 && lines.first?.contains("receiver.key is damaged") == true, "\(ended.errors)")
        #expect(lines.last == "waku-push: warning: without --vapid any server may notify")
    }
}
