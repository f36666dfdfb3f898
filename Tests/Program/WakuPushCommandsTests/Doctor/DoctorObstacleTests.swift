import Foundation
import TestSupport
import Testing

/// Without a daemon `doctor` reports what `serve` would refuse.
@Suite(.timeLimit(.minutes(5)))
struct DoctorObstacleTests {
    private struct Finding: Decodable {
        let check, verdict, text: String
        let remedy: String?
    }

    private let folder: TemporaryFolder
    private let key: KeyFile

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    /// The findings with otherwise valid options.
    private func findings(_ arguments: [String]) async throws -> [Finding] {
        let complete = [
            "doctor", "--json", "--data", folder.path + "/data", "--gorush", "http://127.0.0.1:\(try ReservedPort().number)", "--relay",
            "http://127.0.0.1:\(try ReservedPort().number)",
        ]
        return try await run(complete + arguments).json([Finding].self)
    }

    @Test("Invalid options are findings, each once")
    func configuration() async throws {
        let valid = try await findings(["--identity", key.path, "--http", "127.0.0.1:0"])
        #expect(valid.allSatisfy { !["configuration", "http"].contains($0.check) })
        let found = try await findings([
            "--http", "127.0.0.1:0", "--allow-keys", "/nonexistent", "--otlp", "http://127.0.0.1:1", "--otlp-header-file", "/nonexistent",
        ])
        let invalid = found.filter { $0.check == "configuration" }
        #expect(invalid.count == 2 && invalid.allSatisfy { $0.verdict == "fail" && $0.text.contains("/nonexistent") }, "\(invalid)")
        let unreadable = try await findings([
            "--identity", key.path, "--http", "127.0.0.1:0", "--feedback-secret-file", "/none/secret", "--gorush-token-file", "/none/token",
        ])
        let texts = unreadable.filter { $0.check == "configuration" && $0.verdict == "fail" }.map(\.text)
        #expect(texts.count == 2 && texts.count { $0.contains("/none/secret") } == 1 && texts.count { $0.contains("/none/token") } == 1)
        // The missing identity is the finding on the key.
        #expect(found.count { $0.text.contains("--identity is missing") } == 1)
    }

    /// As `sudo waku-push doctor` on the folder of the service's user.
    @Test(.enabled(if: geteuid() == 0))
    func rootMayExamineTheFolderOfAnotherUser() async throws {
        #expect(mkdir(folder.path + "/data", 0o700) == 0 && chown(folder.path + "/data", 65534, 65534) == 0)
        let data = try await findings(["--identity", key.path, "--http", "127.0.0.1:0"]).first { $0.check == "data" }
        #expect(data?.verdict == "ok", "\(String(describing: data))")
    }

    @Test func aLinkToTheDataFolderIsFollowed() async throws {
        #expect(mkdir(folder.path + "/disk", 0o700) == 0 && symlink(folder.path + "/disk", folder.path + "/data") == 0)
        func data() async throws -> Finding? {
            try await findings(["--identity", key.path, "--http", "127.0.0.1:0"]).first { $0.check == "data" }
        }
        #expect(try await data()?.verdict == "ok")
        #expect(chmod(folder.path + "/disk", 0o750) == 0)
        #expect(try await data()?.text.hasSuffix("(mode 0750)") == true)
    }

    @Test("An address in use is a finding")
    func address() async throws {
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let found = try await findings(["--identity", key.path, "--http", "127.0.0.1:\(server.port)"])
        let http = try #require(found.first { $0.check == "http" })
        #expect(http.verdict == "fail" && http.text == "can't listen on 127.0.0.1:\(server.port): another program uses it.")
        #expect(http.remedy == "choose another with --http")
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/data"))
    }

    @Test("An address for peers that is in use is a finding")
    func peerAddress() async throws {
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let used = "/ip4/127.0.0.1/tcp/\(server.port)"
        let found = try await findings([
            "--identity", key.path, "--http", "127.0.0.1:0", "--relay", "loopback", "--loopback-listen", "127.0.0.1:0",
            "--listen", "/ip4/127.0.0.1/tcp/0", "--listen", used,
        ])
        let listen = found.filter { $0.check == "listen" }
        #expect(listen.count == 1 && listen.first?.verdict == "fail", "\(listen)")
        #expect(listen.first?.text == "can't listen on \(used): another program uses it.")
        #expect(listen.first?.remedy == "choose another with --listen, or --listen off")
    }

    @Test("An oxend that does not answer is a finding")
    func oxend() async throws {
        let onionKey = folder.path + "/onion.key"
        #expect(try await run("session", "key", "new", "--out", onionKey).status == 0)
        let port = try ReservedPort()
        let found = try await findings([
            "--identity", key.path, "--http", "127.0.0.1:0", "--session-http", "127.0.0.1:0", "--session-onion-key", onionKey,
            "--session-oxend", "tcp://127.0.0.1:\(port.number)",
        ])
        let servers = try #require(found.first { $0.check == "storage servers" })
        #expect(servers.verdict == "fail")
        #expect(servers.text.hasPrefix("the oxend at tcp://127.0.0.1:\(port.number) does not answer: "), "\(servers)")
    }
}
