import CurlClient
import Foundation
import TestSupport
import Testing

/// Daemons with a PostgreSQL store.
@Suite(.timeLimit(.minutes(5)))
struct PostgreSQLStoreTests {
    private let folder: TemporaryFolder
    private let key: KeyFile

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    private func standard(_ store: String, data: String = "data") -> [String] {
        ["--identity", key.path, "--data", folder.path + "/" + data, "--store", store]
    }

    private func registrants(_ store: String) async throws -> String? {
        try await run("admin", "status", "--data", folder.path + "/elsewhere", "--store", store).field("registrants")
    }

    @Test func registrationsOutliveTheDaemon() async throws {
        let store = try await PostgreSQLServer.shared().makeDatabase()
        for registrant in 1...2 {
            let daemon = try await Daemon.start(standard(store))
            let registered = try await run(
                "client", "register", "--relay", daemon.relayURL, "--server", key.publicKey, "--timeout", "60s", "--identity",
                try KeyFile(in: folder, "client-\(registrant).key").path, "--device-token", "device-\(registrant)", "--apn-topic",
                "im.status.ethereum")
            #expect(registered.status == 0, "\(registered.errors)")
            // The daemon logs the address of its store.
            let doctor = try await run("doctor", "--data", folder.path + "/data", "--identity", key.path)
            let database = doctor.output.split(separator: "\n").first { $0.hasPrefix("database ") }
            #expect(database?.contains("intact, all rows decrypted, \(registrant) installations") == true, "\(doctor.output)")
            #expect(await daemon.stop().status == 0)
            #expect(try await registrants(store) == String(registrant))
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/data/waku-push.sqlite"))
    }

    @Test func aSecondDaemonAndAnotherIdentityAreRefused() async throws {
        let store = try await PostgreSQLServer.shared().makeDatabase()
        let daemon = try await Daemon.start(standard(store))
        let second = try await serve(standard(store, data: "other"))
        #expect(second.status == 69)
        // After it has waited, as it says, for a daemon that may be stopping.
        #expect(second.errors.contains("waku-push: ") && second.errors.contains("is in use by another waku-push"), "\(second.errors)")
        #expect(await daemon.stop().status == 0)
        let other = try KeyFile(in: folder, "other.key")
        let stranger = try await serve(["--identity", other.path, "--data", folder.path + "/other", "--store", store])
        #expect(stranger.status == 65)
        #expect(stranger.failure?.contains("another identity") == true, "\(stranger.errors)")
    }

    /// As after a copy of the data folder: a Waku node to which both are connected disconnects one of them.
    @Test func nodesWithACopiedNodeKeyAreNamed() async throws {
        let store = try await PostgreSQLServer.shared().makeDatabase()
        let one = try await Daemon.start(standard(store, data: "one") + ["--cluster", "one"])
        try FileManager.default.createDirectory(atPath: folder.path + "/two", withIntermediateDirectories: false)
        try FileManager.default.copyItem(atPath: folder.path + "/one/node.key", toPath: folder.path + "/two/node.key")
        let two = try await Daemon.start(standard(store, data: "two") + ["--cluster", "two"])
        try await eventually {
            two.process.errors.contains("--node-key is that of one too") && one.process.errors.contains("--node-key is that of two too")
        }
        #expect(await two.stop().status == 0)
        #expect(await one.stop().status == 0)
    }

    @Test func aPasswordOnTheCommandLineIsRefused() async throws {
        let ended = try await serve(standard("postgresql://push:hunter2@127.0.0.1/push"))
        #expect(ended.status == 64)
        #expect(ended.failure?.contains("passfile=") == true, "\(ended.errors)")
        #expect(!ended.errors.contains("hunter2"))
    }

    /// The node says why it is not ready, and works again after the server's return.
    @Test func aServerThatIsRestarted() async throws {
        let server = try PostgreSQLServer()
        let store = try await server.makeDatabase()
        let daemon = try await Daemon.start(standard(store))
        // The daemon tells which database it uses.
        let ready = try await run("admin", "status", "--data", folder.path + "/data")
        #expect(ready.status == 0 && ready.field("registrants") == "0", "\(ready.errors)")
        try server.stop()
        try await eventually { (try? await daemon.get("/readyz").status) == 503 }
        let reasons = String(decoding: try await daemon.get("/readyz").body, as: UTF8.self)
        #expect(reasons.contains("PostgreSQL") && !reasons.contains("password"), "\(reasons)")
        for arguments in [[], ["--store", store]] {
            let status = try await run(["admin", "status", "--data", folder.path + "/data"] + arguments)
            #expect(status.status == 2 && status.field("state") == "not ready", "\(status.errors)")
            #expect(status.field("database")?.hasPrefix("unavailable: ") == true, "\(status.output)")
        }
        try server.start()
        try await eventually { (try? await daemon.get("/readyz").status) == 200 }
        #expect(await daemon.stop().status == 0)
    }

    private func serve(_ arguments: [String]) async throws -> Ended {
        try await run(
            ["serve", "--http", "127.0.0.1:\(try freePort())", "--loopback-listen", "127.0.0.1:\(try freePort())", "--listen", "off"]
                + arguments)
    }
}
