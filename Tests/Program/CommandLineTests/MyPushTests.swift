import Core
import CurlClient
import Foundation
import NwakuRelay
import TestSupport
import Testing
import Waku
import WakuCrypto
import WakuPushNode

@testable import TopicPush

/// The program of the article YourOwnProtocol, as an operator runs it.
@Suite("my-push: a program with a protocol of another package", .timeLimit(.minutes(5)))
struct MyPushTests {
    private static let chat = ContentTopic(rawValue: "/chat/1/lobby/proto")
    private let node: OperatedNode
    private let owner = PrivateKey.generate()
    private let program: URL

    init() throws {
        node = try OperatedNode()
        program = try ChildProcess.built("my-push")
    }

    private func start(data: String? = nil, _ arguments: [String] = []) async throws -> Daemon {
        try await Daemon.start(
            ["--identity", node.server.path, "--data", data ?? node.data, "--gorush", node.gorush.url] + arguments, program: program)
    }

    private func relay(of daemon: Daemon) throws -> NwakuRESTRelay {
        try NwakuRESTRelay(configuration: .init(address: NodeAddress(daemon.relayURL)))
    }

    private func publish(_ payload: [UInt8], on topic: ContentTopic, at daemon: Daemon) async throws {
        try await relay(of: daemon).publish(WakuMessage(payload: payload, contentTopic: topic, timestamp: .now()), on: .statusDefault)
    }

    /// Registers a device, and returns once the node's answer says that it is stored.
    ///
    /// - Parameter key: nil: the owner.
    private func register(at daemon: Daemon, by key: PrivateKey? = nil) async throws {
        let owner = key ?? owner
        let device = Registration(token: "token", topics: [Self.chat.rawValue], text: "somebody wrote")
        let server = node.server.key.publicKey
        let payload = try SealedRegistration.seal(
            device, version: 1, end: 4_000_000_000, on: Registration.topic, by: owner, to: server)
        try await publish(payload, on: Registration.topic, at: daemon)
        let relay = try relay(of: daemon)
        let query = StoreQuery(contentTopics: [RegistrationAnswer.topic(of: owner.publicKey, answering: Registration.topic)])
        try await eventually {
            try await relay.storePage(query).messages.contains { received in
                RegistrationAnswer(opening: received.message.payload, with: owner, from: server)?.result == .stored
            }
        }
    }

    private func write(_ texts: [String], at daemon: Daemon) async throws {
        for text in texts { try await publish(Array(text.utf8), on: Self.chat, at: daemon) }
    }

    private func waitForPosts(_ count: Int) async throws {
        try await eventually { try node.gorush.posted.count >= count }
        #expect(try node.gorush.posted.count == count)
    }

    @Test("A registered device is notified after kill -9 and after the move to PostgreSQL")
    func killAndMove() async throws {
        var daemon = try await start()
        try await register(at: daemon)
        try await write(["one"], at: daemon)
        try await waitForPosts(1)
        let status = try await run(["admin", "status", "--data", node.data], program: program)
        #expect(status.field("topic-push devices") == "1", "\(status.output)")
        _ = await daemon.stop(SIGKILL)

        daemon = try await start()
        try await write(["two"], at: daemon)
        try await waitForPosts(2)
        _ = await daemon.stop(SIGKILL)

        let database = try await PostgreSQLServer.shared().makeDatabase()
        let moved = try await run(
            ["admin", "migrate", "--identity", node.server.path, "--data", node.data, "--to", database], program: program)
        #expect(moved.status == 0, "\(moved.errors)")
        #expect(moved.field("topic_push_device") == "1 rows", "\(moved.output)")
        #expect(moved.field("topic_push_subscription") == "1 rows", "\(moved.output)")
        daemon = try await start(["--store", database])
        try await write(["three"], at: daemon)
        try await waitForPosts(3)
        #expect(await daemon.stop().status == 0)
    }

    @Test("Two nodes notify once, and one goes on when the other is killed")
    func twoNodes() async throws {
        let store = ["--store", try await PostgreSQLServer.shared().makeDatabase()]
        let one = try await start(data: node.data + "-one", store + ["--cluster", "one"])
        let two = try await start(data: node.data + "-two", store + ["--cluster", "two", "--relay", one.relayURL])
        try await register(at: one)
        try await write((1...10).map { "both \($0)" }, at: one)
        try await waitForPosts(10)
        _ = await two.stop(SIGKILL)
        try await write((1...5).map { "one \($0)" }, at: one)
        try await waitForPosts(15)
        #expect(await one.stop().status == 0)
    }

    @Test("Operators list, find, show, export, import and end its devices")
    func operators() async throws {
        let daemon = try await start()
        try await register(at: daemon)
        let key = hexString(owner.publicKey.compressed)
        let identified = ["--identity", node.server.path]
        @Sendable func registrations(_ arguments: [String], data: String? = nil) async throws -> Ended {
            try await run(["admin", "registrations"] + arguments + ["--data", data ?? node.data], program: program)
        }
        let row = [key.prefix(16) + "…", "", "firebase", "1"]
        for arguments in [["list"], ["list", "--platform", "firebase"], ["find", String(key.prefix(9))], ["find", owner.publicKey.hex]] {
            let found = try await registrations(arguments)
            #expect(found.status == 0 && found.output.contains(row[0]) && found.output.contains("topic-push"), "\(arguments): \(found)")
        }
        #expect(try await !registrations(["list", "--platform", "apn"]).output.contains(row[0]))
        #expect(try await !registrations(["list", "--offset", "1"]).output.contains(row[0]))
        try "token".write(toFile: node.folder.path + "/token", atomically: true, encoding: .utf8)
        let byToken = try await registrations(["find", "--token-file", node.folder.path + "/token"] + identified)
        #expect(byToken.output.contains(row[0]), "\(byToken)")
        let hidden = try await registrations(["show", String(key.prefix(9))] + identified)
        #expect(hidden.field("key") == key && hidden.field("protocol") == "topic-push", "\(hidden)")
        #expect(hidden.field("device token")?.hasPrefix("<hidden") == true && hidden.field("content") == nil)
        let shown = try await registrations(["show", owner.publicKey.hex, "--reveal"] + identified)
        #expect(shown.field("device token") == "token" && shown.field("content")?.contains("somebody wrote") == true, "\(shown)")
        let topics = try await run(["admin", "topics", "--data", node.data], program: program)
        #expect(topics.rows.contains { $0.first == Self.chat.rawValue && $0.contains("topic-push") }, "\(topics)")
        let status = try await run(["admin", "status", "--data", node.data], program: program)
        #expect(status.field("topic-push devices") == "1")

        let file = node.folder.path + "/registrations"
        let exported = try await registrations(["export", file] + identified)
        #expect(exported.output.hasPrefix("1 registrations exported"), "\(exported)")
        let database = try await PostgreSQLServer.shared().makeDatabase()
        let other = node.folder.path + "/other"
        for line in ["1 imported, 0 kept", "0 imported, 1 kept"] {
            let imported = try await registrations(["import", file, "--store", database] + identified, data: other)
            #expect(imported.output.hasPrefix(line), "\(imported)")
        }
        let foreign = try await run(
            ["admin", "registrations", "import", file, "--data", node.folder.path + "/foreign"] + identified)
        #expect(foreign.status == 65 && foreign.failure?.contains("is of the protocol topic-push") == true, "\(foreign)")

        #expect(try await registrations(["remove", String(key.prefix(9))]).output.hasPrefix("would remove \(row[0])"))
        #expect(try await registrations(["remove", String(key.prefix(9)), "--yes"]).output.hasPrefix("removed \(row[0])"))
        try await write(["nobody"], at: daemon)
        #expect(await daemon.stop().status == 0)
        #expect(try node.gorush.posted.isEmpty)
        #expect(try await registrations(["list", "--state", "unregistered"]).output.contains(row[0]))
        // An end is exported and imported too.
        let ended = node.folder.path + "/ended"
        #expect(try await registrations(["export", ended] + identified).output.hasPrefix("1 registrations exported"))
        let last = try await registrations(["import", ended] + identified, data: node.folder.path + "/last")
        #expect(last.output.hasPrefix("1 imported, 0 kept"), "\(last)")

        // The other node knows the topics of the imported device.
        let moved = try await start(data: other, ["--store", database])
        try await write(["one"], at: moved)
        try await waitForPosts(1)
        #expect(await moved.stop().status == 0)
    }

    @Test("Its options are options of serve: on the command line, in the environment and files, in help and checks")
    func options() async throws {
        let name = "topic-push-max-registrations"
        let file = node.folder.path + "/my-push.yaml"
        func config(_ command: String, _ arguments: [String] = [], environment: [String: String] = [:]) async throws -> Ended {
            try await run(["config", command] + arguments, program: program, environment: environment)
        }
        func values(_ ended: Ended) throws -> [String] {
            struct Value: Decodable { let option: String, values: [String], source: String }
            return try ended.json([Value].self).filter { $0.option.hasPrefix("topic-push-") }.map {
                "\($0.option)=\($0.values) \($0.source)"
            }
        }
        let others = [#"topic-push-registrations=["1/min burst 20"] default"#, #"topic-push-lifetime=["3600"] default"#]
        #expect(try values(try await config("show", ["--json"])) == [#"\#(name)=["10000"] default"#] + others)
        try "identity: \(node.server.path)\n\(name): 5\n".write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try values(try await config("show", ["--json", "--config", file])) == [#"\#(name)=["5"] \#(file):2"#] + others)
        let variable = "WAKU_PUSH_TOPIC_PUSH_MAX_REGISTRATIONS"
        #expect(
            try values(try await config("show", ["--json", "--config", file], environment: [variable: "6"]))
                == [#"\#(name)=["6"] \#(variable)"#] + others)
        for given in [["--\(name)", "7"], ["--\(name)=7"]] {
            let shown = try await config("show", ["--json", "--config", file] + given, environment: [variable: "6"])
            #expect(try values(shown) == [#"\#(name)=["7"] command line"#] + others, "\(shown)")
        }
        #expect(try await config("check", ["--config", file, "--\(name)", "off"]).status == 0)
        #expect(try await config("default").output.contains("\n#topic-push-lifetime: 3600\n"))

        let rule = #", "none": give a number from 1 to 1000000000, or off"#
        let allowed = "invalid value for --\(name)\(rule)"
        let wrong = try await config("check", ["--config", file, "--\(name)", "none"])
        #expect(wrong.status == 64 && wrong.errors == "my-push: --\(name) has an invalid value\(rule)\n", "\(wrong)")
        let variableWrong = try await config("check", ["--config", file], environment: [variable: "none"])
        #expect(variableWrong.status == 64 && variableWrong.errors == "my-push: \(variable) has an \(allowed)\n", "\(variableWrong)")
        try "identity: \(node.server.path)\n\(name): none\ntopic-push-lifetim: 5\n".write(toFile: file, atomically: true, encoding: .utf8)
        let fileWrong = try await config("check", ["--config", file])
        #expect(
            fileWrong.errors.split(separator: "\n").sorted() == [
                "my-push: \(file):2: \(name) has an \(allowed)",
                "my-push: \(file):3: there is no option topic-push-lifetim: did you mean topic-push-lifetime?",
            ], "\(fileWrong)")
        let missing = try await run(["serve", "--\(name)"], program: program)
        #expect(missing.status == 64 && missing.errors.hasPrefix("my-push: Missing value for '--\(name) <"), "\(missing)")
        let sections = ["serve": "TOPIC-PUSH OPTIONS", "config check": "OPTIONS OF SERVE", "doctor": "OPTIONS OF SERVE"]
        for (command, title) in sections {
            let help = try await run(command.split(separator: " ").map(String.init) + ["--help"], program: program)
            let section = help.output.split(separator: "\n\n").first { $0.hasPrefix("\(title):\n") }
            #expect(section?.contains("--\(name) <") == true, "\(help)")
        }
        for shell in ["bash", "zsh", "fish"] {
            let script = try await run(["--generate-completion-script", shell], program: program)
            #expect(script.status == 0 && script.output.contains(name), "\(shell)")
        }
        #expect(try await !run(["admin", "status", "--help"], program: program).output.contains("TOPIC-PUSH"))
        #expect(try await run("serve", "--\(name)", "1").status == 64)
    }

    @Test("SIGHUP changes its limits, and a limit is one of the protocol, not of the node")
    func reloadedLimits() async throws {
        let file = node.folder.path + "/my-push.yaml"
        func configure(_ limit: Int) throws {
            try "topic-push-max-registrations: \(limit)\n".write(toFile: file, atomically: true, encoding: .utf8)
        }
        try configure(1)
        let daemon = try await start(["--config", file])
        try await register(at: daemon)
        func devices() async throws -> String? {
            try await run(["admin", "status", "--data", node.data], program: program).field("topic-push devices")
        }
        // A device that was not notified makes room for another.
        try await register(at: daemon, by: .generate())
        #expect(try await devices() == "1")
        try configure(2)
        daemon.process.send(SIGHUP)
        try await eventually { daemon.process.errors.contains("configuration reloaded changed=topic-push-max-registrations") }
        try await register(at: daemon, by: .generate())
        #expect(try await devices() == "2")
        let limits = try await run(["admin", "limits", "--data", node.data], program: program)
        #expect(limits.rows.contains { $0.starts(with: ["topic-push", "registration_count", "stranger"]) }, "\(limits)")
        let metrics = String(decoding: try await daemon.get("/metrics").body, as: UTF8.self)
        #expect(metrics.contains(#"waku_push_refused_total{protocol="topic-push",limit="registration_count",standing="stranger"} 1"#))
        #expect(await daemon.stop().status == 0)
    }

    @Test("Help and errors have the program's name", arguments: [["--help"], ["serve", "--help"], ["admin", "status", "--help"]])
    func name(arguments: [String]) async throws {
        let help = try await run(arguments, program: program)
        #expect(help.output.contains("USAGE: my-push "))
        #expect(help.output.matches(of: /[^\/]waku-push [a-z]/).isEmpty, "\(help.output)")
        let ended = try await run(["serve", "--unknown"], program: program)
        #expect(ended.errors.hasPrefix("my-push: "), "\(ended.errors)")
        #expect(!ended.errors.contains("waku-push"), "\(ended.errors)")
    }
}
