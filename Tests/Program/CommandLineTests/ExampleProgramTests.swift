import Foundation
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// The programs of the article CompletePrograms, against a daemon, over libp2p.
@Suite(.timeLimit(.minutes(5)))
struct ExampleProgramTests {
    private let node: OperatedNode

    init() throws {
        node = try OperatedNode()
    }

    private func start(_ name: String, _ arguments: String...) throws -> ChildProcess {
        try ChildProcess(arguments, program: ChildProcess.built("example-\(name)"))
    }

    private func registerBob(at address: String) async throws {
        let ended = try await node.recorded([
            "client", "register", "--relay", address, "--server", node.server.publicKey, "--identity", node.bob.path, "--device-token",
            OperatedNode.deviceToken, "--apn-topic", "im.status.ethereum", "--installation", "bobs-phone", "--timeout", "60s",
        ])
        #expect(ended.status == 0, "\(ended.errors)")
    }

    private func posts(to token: String) -> Int {
        node.gorush.requests.count {
            $0.head.hasPrefix("POST") && String(decoding: $0.body, as: UTF8.self).contains(#""tokens":["\#(token)"]"#)
        }
    }

    @Test func botGreetsAFriendOnceAndIsNotified() async throws {
        let daemon = try await node.start()
        let address = try await daemon.multiaddr()
        try await registerBob(at: address)
        let folder = node.folder.path + "/bot"
        var bot = try start("bot", address, node.server.publicKey, folder, node.bob.publicKey)
        try await eventually { bot.errors.contains("bobs-phone of \(node.bob.key.publicKey) was notified by") }
        try await eventually { bot.errors.contains("registered with \(node.server.key.publicKey), version 1") }
        #expect(posts(to: OperatedNode.deviceToken) == 1)

        // After a restart it is the same bot, and greets no one twice.
        bot = try start("bot", address, node.server.publicKey, folder, node.bob.publicKey)
        let line = /the bot is (04[0-9a-f]{128})/
        try await eventually { bot.errors.contains(line) }
        let key = try #require(bot.errors.firstMatch(of: line)).1
        let sender = try start("sender", address, node.server.publicKey, String(key), "hello")
        #expect(await sender.status == 0, "\(sender.errors)")
        #expect(sender.output.contains("of \(key) was notified by \(node.server.key.publicKey)\n"))
        #expect(posts(to: "the bot's device token") == 1)
        #expect(posts(to: OperatedNode.deviceToken) == 1)
        #expect(await daemon.stop().status == 0)
    }

    /// It ended after it had found the friend's device, and before it greeted.
    @Test func botGreetsAFriendThatItKnewBefore() async throws {
        let daemon = try await node.start()
        let address = try await daemon.multiaddr()
        try await registerBob(at: address)
        let folder = node.folder.path + "/bot"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        try FileManager.default.copyItem(atPath: node.alice.path, toPath: folder + "/identity.key")
        try node.alice.key.withBytes { Data($0) }.write(to: URL(filePath: folder + "/identity"))
        let found = try await node.recorded([
            "client", "discover", "--relay", address, "--state", folder, "--server", node.server.publicKey, "--timeout", "60s",
            node.bob.publicKey,
        ])
        #expect(found.status == 0, "\(found.errors)")
        let bot = try start("bot", address, node.server.publicKey, folder, node.bob.publicKey)
        try await eventually { bot.errors.contains("bobs-phone of \(node.bob.key.publicKey) was notified by") }
        #expect(posts(to: OperatedNode.deviceToken) == 1)
        #expect(await daemon.stop().status == 0)
    }

    @Test func listenerPrintsTheMessagesOnATopic() async throws {
        let daemon = try await node.start()
        let address = try await daemon.multiaddr()
        let topic = ContentTopic(TopicTag(of: StatusTopics.personal(node.server.key.publicKey)))
        let listener = try start("listener", address, topic.rawValue)
        try await eventually { listener.errors.contains("relay attached") }
        try await registerBob(at: address)
        try await eventually { listener.errors.contains(/\d+ bytes, [0-9a-f]{64}\n/) }
        #expect(await daemon.stop().status == 0)
    }

    @Test func appFinishesWhatTheShareExtensionLeft() async throws {
        var daemon = try await node.start()
        var address = try await daemon.multiaddr()
        try await registerBob(at: address)
        #expect(await daemon.stop().status == 0)
        let folder = node.folder.path + "/app group"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        try node.alice.key.withBytes { Data($0) }.write(to: URL(filePath: folder + "/identity"))

        let arguments = [node.server.publicKey, folder, node.bob.publicKey, "a shared picture"]
        let program = try ChildProcess.built("example-share")
        let share = try ChildProcess([address] + arguments + ["1"], program: program)
        #expect(await share.status == 0, "\(share.errors)")
        #expect(share.output.isEmpty && FileManager.default.fileExists(atPath: folder + "/shared"))

        daemon = try await node.start()
        address = try await daemon.multiaddr()
        let app = try ChildProcess([address] + arguments + ["60"], program: program)
        #expect(await app.status == 0, "\(app.errors)")
        #expect(app.output.hasPrefix("device bobs-phone of \(node.bob.key.publicKey) was notified by"), "\(app.output)")
        #expect(posts(to: OperatedNode.deviceToken) == 1)
        #expect(await daemon.stop().status == 0)
    }

    @Test func articleShowsTopicPush() throws {
        let article = Repository.file("Sources/Program/WakuPushNode/WakuPushNode.docc/YourOwnProtocol.md")
        var lineCount = 0
        for name in ["Registration", "Subscriptions", "TopicPush", "main"] {
            let folder = name == "main" ? "my-push" : "TopicPush"
            let file = Repository.file("Tests/Examples/topic-push/Sources/\(folder)/\(name).swift")
            let code = try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            lineCount += code.count
            let table = GeneratedTable(name, in: article)
            #expect(try table.isCurrent(["", "```swift"] + code.map(String.init) + ["```", ""]), "run Deploy/dev/generate-tables")
        }
        #expect(lineCount <= 150)
    }
}
