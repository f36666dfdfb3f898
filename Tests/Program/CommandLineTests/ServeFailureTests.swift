import Storage
import Foundation
import GRDB
import LibP2P
import NodeAssembly
import TestSupport
import Testing
import WakuCrypto

/// Each failure is one line on standard error, with its exit code.
@Suite(.timeLimit(.minutes(5)))
struct ServeFailureTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private var data: String { folder.path + "/data" }

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    /// Runs a daemon with valid options, except for those of `arguments` and `environment`.
    private func serve(_ arguments: String..., environment: [String: String] = [:]) async throws -> Ended {
        let listen = ["--http", "127.0.0.1:\(try freePort())", "--loopback-listen", "127.0.0.1:\(try freePort())"]
        let peers = arguments.contains("--listen") || arguments.contains("--relay") ? [] : ["--listen", "/ip4/127.0.0.1/tcp/0"]
        let standard = [
            "--identity", key.path, "--data", data, "--gorush", "http://127.0.0.1:\(try freePort())", "--log-level", "critical",
        ]
        return try await run(["serve"] + listen + peers + standard + arguments, environment: environment)
    }

    private func expect(
        _ ended: Ended, _ status: Int32, _ message: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(ended.status == status, sourceLocation: sourceLocation)
        #expect(ended.failure?.contains(message) == true, "\(ended.errors)", sourceLocation: sourceLocation)
        #expect(ended.output == "", sourceLocation: sourceLocation)
    }

    // MARK: Usage

    @Test func withoutAnIdentity() async throws {
        let ended = try await run("serve", "--data", data)
        expect(ended, 64, "--identity is missing: make a key with waku-push identity new --out id.key")
        #expect(!FileManager.default.fileExists(atPath: data))
    }

    /// WakuPushCommandsTests has all others.
    @Test func badOptions() async throws {
        expect(try await serve("--poll-interval=banana"), 64, "--poll-interval")
        expect(try await serve("--relay", "http://127.0.0.1/?a=b"), 64, "the node's address ")
        expect(try await serve(environment: ["WAKU_PUSH_POLL_INTERVAL": "banana"]), 64, "WAKU_PUSH_POLL_INTERVAL ")
    }

    // MARK: The database

    /// Nothing else is logged for the 12 s until it is given up.
    @Test func databaseThatHangsIsNamedAfterThreeSeconds() async throws {
        let server = try RawHTTPServer { _ in .hang }
        defer { server.stop() }
        let start = ContinuousClock.now
        let child = try ChildProcess([
            "serve", "--identity", key.path, "--data", data, "--http", "127.0.0.1:\(try freePort())", "--gorush",
            "http://127.0.0.1:\(try freePort())", "--relay", "http://127.0.0.1:\(try freePort())", "--store",
            "postgresql://push@127.0.0.1:\(server.port)/push",
        ])
        try await eventually { child.errors.contains("waiting for the database") }
        #expect(ContinuousClock.now - start >= .seconds(3))
        #expect(child.errors.contains("database push on 127.0.0.1:\(server.port)") && child.isRunning, "\(child.errors)")
        child.send(SIGKILL)
        _ = await child.status
    }

    // MARK: Files

    @Test func dataFolderThatCannotBeMade() async throws {
        try write("a file", to: folder.path + "/file")
        let data = folder.path + "/file/data"
        expect(try await serve("--data", data), 73, "data folder \(data) can't be made")
    }

    @Test func databaseOfALaterVersion() async throws {
        try makeDatabase { try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('9 of the future')") }
        expect(try await serve(), 65, "was made by a newer waku-push")
    }

    @Test func databaseOfAnotherIdentity() async throws {
        try makeDatabase(identity: .generate())
        expect(try await serve(), 65, "belongs to another identity")
    }

    @Test func fileThatIsNotADatabase() async throws {
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        try write(String(repeating: "This is no database. ", count: 500), to: DataFolder.databasePath(in: data))
        expect(try await serve(), 65, "is damaged: restore a backup")
    }

    private func makeDatabase(identity: PrivateKey? = nil, change: (Database) throws -> Void = { _ in }) throws {
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        try NodeAssembly.store(in: data, of: identity ?? key.key).close()
        let queue = try DatabaseQueue(path: DataFolder.databasePath(in: data))
        try queue.write(change)
        try queue.close()
    }

    /// 14 were taken for a missing folder, and 20 ended the process by a signal.
    @Test(arguments: [14, 20, 40])
    func tooFewDescriptors(limit: Int) async throws {
        let child = try ChildProcess(
            ["serve", "--identity", key.path, "--data", data], shell: "ulimit -n \(limit); exec \"$0\" \"$@\"")
        let ended = Ended(status: await child.status, output: child.output, errors: child.errors)
        expect(ended, 69, "the limit of open files is \(limit), too low to start")
        #expect(!FileManager.default.fileExists(atPath: data))
    }

    // MARK: In use by others

    @Test func dataFolderInUse() async throws {
        let daemon = try await Daemon.start(["--identity", key.path, "--data", data])
        expect(try await serve(), 69, "data folder \(data) is in use by another waku-push")
        #expect(await daemon.stop().status == 0)
    }

    @Test(arguments: ["--http", "--loopback-listen"])
    func portInUse(option: String) async throws {
        let server = try RawHTTPServer { _ in .hang }
        defer { server.stop() }
        let ended = try await serve(option, "127.0.0.1:\(server.port)")
        expect(ended, 69, "127.0.0.1:\(server.port)")
        #expect(ended.failure?.lowercased().contains("choose another") == true)
    }

    /// An address for documentation, which no machine has.
    @Test func addressOfAnotherMachine() async throws {
        expect(
            try await serve("--http", "192.0.2.1:9090"), 69,
            "can't listen on 192.0.2.1:9090: this machine does not have this address. Choose another with --http")
    }

    @Test func libp2pPortInUse() async throws {
        let server = try RawHTTPServer { _ in .hang }
        defer { server.stop() }
        let address = "/ip4/127.0.0.1/tcp/\(server.port)"
        expect(
            try await serve("--listen", address), 69,
            "can't listen on \(address): another program uses it. Choose another with --listen, or --listen off")
    }

    @Test func nodeKeys() async throws {
        let file = folder.path + "/node.key"
        try write("nonsense", to: file)
        expect(try await serve("--node-key", file), 65, "node key file \(file) does not contain a libp2p private key")
        try write(hexString(NodeKey(key.key).encoded().withBytes { Array($0) }), to: file)
        expect(try await serve("--node-key", file), 65, "node key file \(file) contains the push identity")
        try write(hexString(NodeKey.generate().encoded().withBytes { Array($0) }), to: file, mode: 0o640)
        expect(try await serve("--node-key", file), 77, "node key file \(file) is readable by others (mode 0640): chmod 600")
        expect(try await serve("--node-key", folder.path + "/none/node.key"), 73, "can't be made")
    }
}
