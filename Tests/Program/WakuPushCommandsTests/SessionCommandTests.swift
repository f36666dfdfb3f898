import Foundation
import Core
import SessionProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import WakuPushCommands

/// `session key`, and the options of `serve` for Session.
@Suite(.timeLimit(.minutes(5)))
struct SessionCommandTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private var onionKey: String { folder.path + "/onion.key" }
    private var nodes: String { folder.path + "/nodes.json" }

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    private func newKey() async throws -> Ended { try await run("session", "key", "new", "--out", onionKey) }

    private func writePrivate(_ data: Data, to path: String, mode: Int = 0o600) throws {
        try? FileManager.default.removeItem(atPath: path)
        try #require(FileManager.default.createFile(atPath: path, contents: data, attributes: [.posixPermissions: mode]))
    }

    /// Checks options of a valid node with these.
    private func check(_ arguments: String..., environment: [String: String] = [:]) async throws -> Ended {
        try await run(["config", "check", "--identity", key.path] + arguments, environment: environment)
    }

    @Test func aNewKeyHasMode0600AndIsNeverWrittenOver() async throws {
        let made = try await newKey()
        #expect(made.status == 0 && made.errors == "")
        #expect(try FileManager.default.attributesOfItem(atPath: onionKey)[.posixPermissions] as? Int == 0o600)
        let text = try String(contentsOfFile: onionKey, encoding: .utf8).trimmingCharacters(in: .newlines)
        let secret = try #require(bytes(hex: text))
        let publicKey = hexString(try Sodium.load().x25519PublicKey(of: SecretBytes(secret)))
        #expect(made.output.contains(publicKey) && !made.output.contains(text))
        let again = try await newKey()
        #expect(again.status == 73 && again.failure?.contains("exists already") == true)
        let shown = try await run("session", "key", "show", "--key", onionKey, "--json")
        #expect(try shown.json() == ["publicKey": publicKey])
    }

    @Test func aKeyMayBe32Bytes() async throws {
        try writePrivate(Data(repeating: 9, count: 32), to: onionKey)
        #expect(try await run("session", "key", "show", "--key", onionKey).status == 0)
    }

    @Test func keysThatCannotBeUsedAreRefused() async throws {
        func show() async throws -> Ended { try await run("session", "key", "show", "--key", onionKey) }
        #expect(try await show().status == 65)
        for content in ["", "ab", String(repeating: "z", count: 64), String(repeating: "a", count: 62)] {
            try writePrivate(Data(content.utf8), to: onionKey)
            #expect(try await show().failure?.contains("contains neither 32 bytes nor 64 hexadecimal digits") == true)
        }
        try writePrivate(Data(repeating: 9, count: 32), to: onionKey, mode: 0o644)
        let ended = try await show()
        #expect(ended.status == 77 && ended.failure?.contains("chmod 600") == true)
    }

    /// A storage server to which nobody connects.
    private static let nodesText =
        #"[{"pubkey_x25519":"\#(String(repeating: "ab", count: 32))","ip":"127.0.0.1","port":1,"swarm_id":"0000000000000001"}]"#

    @Test func sessionIsSwitchedOnWithItsOptions() async throws {
        _ = try await newKey()
        try write(Self.nodesText, to: nodes)
        let session = ["--session-http", "127.0.0.1:3000", "--session-onion-key", onionKey]
        func check(_ more: String...) async throws -> Ended {
            try await run(["config", "check", "--identity", key.path] + session + more)
        }
        #expect(try await check("--session-nodes", nodes).status == 0)
        #expect(try await check("--session-oxend", "ipc:///run/oxend.sock", "--session-apns-topic", "com.session").status == 0)
        #expect(try await check().failure?.contains("--session-nodes or --session-oxend is missing") == true)
        let both = try await check("--session-nodes", nodes, "--session-oxend", "tcp://127.0.0.1:1")
        #expect(both.failure?.contains("mutually exclusive") == true)
        #expect(try await check("--session-oxend", "http://oxend").status == 64)
        #expect(try await check("--session-nodes", nodes, "--session-renewal", "60m").failure?.contains("--session-renewal") == true)
        #expect(try await check("--session-nodes", nodes, "--session-apns-topic", "a b").status == 64)
        for text in ["{}", "[]"] {
            try write(text, to: nodes)
            let broken = try await check("--session-nodes", nodes)
            #expect(broken.status == 65 && broken.failure?.contains("nodes file \(nodes)") == true)
        }
    }

    @Test func optionsOfSessionNeedItsAddress() async throws {
        #expect(try await check("--session-nodes", nodes).failure?.contains("has no effect without --session-http") == true)
        for name in ["WAKU_PUSH_SESSION_NODES", "WAKU_PUSH_SESSION_APNS_TOPIC"] {
            let ended = try await check(environment: [name: "x"])
            #expect(ended.status == 64 && ended.failure?.contains("\(name): --session-") == true, "\(ended.errors)")
        }
        #expect(try await check("--session-http", "3000").status == 64)
        let incomplete = try await check("--session-http", "127.0.0.1:3000").errors
        #expect(incomplete.contains("--session-onion-key is missing"))
        #expect(incomplete.contains("--session-nodes or --session-oxend is missing"))
    }

    @Test func optionsOfSessionAreReadFromTheEnvironmentAndTheFile() async throws {
        _ = try await newKey()
        try write(Self.nodesText, to: nodes)
        let environment = [
            "WAKU_PUSH_SESSION_HTTP": "127.0.0.1:3000", "WAKU_PUSH_SESSION_ONION_KEY": onionKey, "WAKU_PUSH_SESSION_NODES": nodes,
        ]
        #expect(try await check(environment: environment).status == 0)
        let bad = environment.merging(["WAKU_PUSH_SESSION_HTTP": "here"]) { $1 }
        #expect(try await check(environment: bad).failure?.contains("--session-http is not an address") == true)
        let file = folder.path + "/waku-push.yaml"
        try write("session-http: 127.0.0.1:3000\nsession-onion-key: \(onionKey)\nsession-nodes: \(nodes)\n", to: file)
        #expect(try await check("--config", file).status == 0)
    }

    @Test func aMissingLibraryIsOneLineThatNamesItsPackage() throws {
        let error = OptionalLibraryError(library: "libsodium.so.23", debianPackage: "libsodium23", reason: "no such file")
        let failure = try #require(CommandFailure(explaining: error))
        #expect(failure.code == .unavailable)
        #expect(failure.message.contains("install libsodium23") && !failure.message.contains("\n"))
    }
}
