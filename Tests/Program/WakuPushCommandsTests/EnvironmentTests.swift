import TestSupport
import Testing

/// Options from the environment. The command line takes precedence.
@Suite(.timeLimit(.minutes(5)))
struct EnvironmentTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private let other: KeyFile

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
        other = try KeyFile(in: folder, "other.key")
    }

    @Test func identity() async throws {
        let environment = ["WAKU_PUSH_IDENTITY": key.path]
        #expect(try await run(["identity", "show"], environment: environment).field("public key") == key.publicKey)
        let shown = try await run(["identity", "show", "--identity", other.path], environment: environment)
        #expect(shown.field("public key") == other.publicKey)
    }

    @Test func anEmptyValueCountsAsUnset() async throws {
        let ended = try await run(["config", "check", "--data", folder.path + "/data"], environment: ["WAKU_PUSH_IDENTITY": ""])
        #expect(ended.status == 64)
        #expect(ended.failure?.hasPrefix("--identity is missing") == true)
    }

    @Test func aFlagThatTheEnvironmentSets() async throws {
        for value in ["1", "true", "yes", "0", "false", "no"] {
            let ended = try await run(["config", "check"], environment: ["WAKU_PUSH_IDEMPOTENT_REGISTRATIONS": value])
            #expect(ended.failure?.hasPrefix("--identity is missing") == true, "\(ended.errors)")
        }
    }
}
