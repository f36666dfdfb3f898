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

    @Test func sighupAppliesWhatNeedsNoRestart() async throws {
        let data = folder.path + "/data"
        func text(_ more: String) -> String { "identity: \(key.path)\ndata: \(data)\n\(more)\n" }
        try write(text("log-level: warning"), to: path)
        let daemon = try await Daemon.start(["--config", path])
        #expect(!daemon.process.errors.contains("node started"))

        try write(text("log-level: info\nlimit: {requests: 1/s}\nmax-request-age: 5m"), to: path)
        daemon.process.send(SIGHUP)
        try await eventually { daemon.process.errors.contains("some options need a restart") || !daemon.process.isRunning }
        #expect(daemon.process.errors.contains("configuration read again changed=\"log-level, limit\""), "\(daemon.process.errors)")
        #expect(daemon.process.errors.contains("options=max-request-age"))

        try write(text("log-level: nonsense"), to: path)
        daemon.process.send(SIGHUP)
        try await eventually { daemon.process.errors.contains("configuration not read: nothing changed") || !daemon.process.isRunning }
        #expect(daemon.process.errors.contains(":3: log-level has an invalid value for --log-level"))
        #expect(try await daemon.get("/healthz").status == 200)

        // The file serves admin too.
        #expect(try await run(["admin", "status", "--config", path.replacing("waku-push.yaml", with: "admin.yaml")]).status == 65)
        try write(text(""), to: folder.path + "/admin.yaml")
        #expect(try await run(["admin", "status", "--config", folder.path + "/admin.yaml"]).status == 0)
        #expect(await daemon.stop().status == 0)
    }
}
