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
    private static let curl = CurlClient()
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

    private func publish(_ payload: [UInt8], on topic: ContentTopic, at daemon: Daemon) async throws {
        let api = NwakuAPI(address: try NodeAddress(daemon.relayURL), client: Self.curl)
        _ = try await api.push(WakuMessage(payload: payload, contentTopic: topic, timestamp: .now()), on: .statusDefault)
    }

    /// Registers the owner's device, and returns once the node's answer says that it is stored.
    private func register(at daemon: Daemon) async throws {
        let device = Registration(token: "token", topics: [Self.chat.rawValue], text: "somebody wrote")
        let server = node.server.key.publicKey
        let payload = try SealedRegistration.seal(
            device, version: 1, end: 4_000_000_000, on: Registration.topic, by: owner, to: server)
        try await publish(payload, on: Registration.topic, at: daemon)
        let api = NwakuAPI(address: try NodeAddress(daemon.relayURL), client: Self.curl)
        let query = StoreQuery(contentTopics: [RegistrationAnswer.topic(of: owner.publicKey, answering: Registration.topic)])
        try await eventually {
            try await api.query(query).messages.contains { received in
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
