import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct HelpTests {
    private static let withExamples = [
        [], ["serve"], ["identity", "new"], ["identity", "show"], ["admin"], ["admin", "registrations", "list"],
        ["admin", "registrations", "find"], ["admin", "registrations", "show"], ["admin", "registrations", "remove"],
        ["admin", "registrations", "export"], ["admin", "registrations", "import"], ["admin", "outbox", "retry"],
        ["admin", "records", "list"], ["admin", "records", "show"], ["admin", "records", "remove"],
        ["admin", "outbox", "drop"], ["admin", "trace"], ["admin", "peers"], ["admin", "drain"], ["admin", "log-level"],
        ["admin", "backup"],
        ["admin", "restore"],
        ["admin", "check"], ["admin", "rotate-storage-key"], ["admin", "test-push"], ["doctor"], ["client"], ["client", "run"],
        ["client", "register"],
        ["client", "discover"], ["client", "notify"], ["client", "status"], ["client", "unregister"], ["config"],
        ["client", "v0.1"], ["client", "v0.1", "register"], ["client", "v0.1", "unregister"], ["client", "v0.1", "query"],
        ["client", "v0.1", "notify"], ["client", "v0.1", "run"], ["client", "v0.1", "status"],
    ]
    private static let withoutExamples = [
        ["identity"], ["admin", "status"], ["admin", "records"], ["admin", "registrations"], ["admin", "registrations", "stats"],
        ["admin", "outbox"], ["admin", "outbox", "list"], ["admin", "topics"], ["client", "query"], ["demo"], ["config", "check"],
        ["config", "show"], ["config", "default"],
    ]

    @Test(arguments: withExamples + withoutExamples)
    func help(command: [String]) async throws {
        let help = try await run(command + ["--help"])
        #expect(help.status == 0)
        #expect(help.errors == "")
        let name = (["waku-push"] + command).joined(separator: " ")
        #expect(help.output.split(separator: "\n").contains { ($0 + " ").hasPrefix("USAGE: \(name) ") })
        #expect(help.output.contains("EXAMPLE") == Self.withExamples.contains(command))
        #expect(!help.output.contains("\u{1B}"))
        guard Self.withExamples.contains(command) else { return }
        // Examples can be copied: no line is wrapped.
        let lines = help.output.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.hasPrefix("EXAMPLE") })
        let examples = lines[(start + 1)...].prefix { !$0.isEmpty }
        #expect(examples.first?.hasPrefix("  waku-push ") == true)
        for line in examples { #expect(line.hasPrefix("  "), "\(line)") }
    }

    /// Each option of serve shows its default, and the help says once where else options can be set.
    @Test func defaultsAreShown() async throws {
        let help = try await run("serve", "--help").output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for standard in ["127.0.0.1:8645", "127.0.0.1:9090", "300ms", "10m", "combined", "info", "text", "/waku/2/rs/16/32"] {
            #expect(help.contains("default: \(standard)"), "\(standard)")
        }
        #expect(try await run("--help").output.contains("WAKU_PUSH_POLL_INTERVAL"))
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func completions(shell: String) async throws {
        let script = try await run("--generate-completion-script", shell)
        #expect(script.status == 0)
        #expect(script.errors == "")
        for name in ["rotate-storage-key", "doctor", "token-file"] { #expect(script.output.contains(name), "\(name)") }
    }

    @Test func version() async throws {
        let version = try await run("--version")
        #expect(version.status == 0)
        // With the commit when this was built by Deploy/release.
        #expect(version.output.wholeMatch(of: /\d+\.\d+\.\d+( \([0-9a-f]{12}\))?\n/) != nil)
        #expect(version.errors == "")
    }

    @Test func withoutACommand() async throws {
        let ended = try await run()
        #expect(ended.status == 0)
        #expect(ended.output == (try await run("--help").output))
    }

    /// Wrong usage is reported like every other failure.
    @Test(arguments: [
        ["no-such-command"], ["--no-such-option"], ["identity", "new"], ["identity", "new", "--out"], ["identity", "no-such-command"],
        ["admin", "registrations", "show"], ["admin", "registrations", "show", "not-hex"],
        ["admin", "registrations", "list", "--limit", "x"],
        ["admin", "registrations", "list", "--limit", "0"], ["admin", "outbox", "list", "--limit", "0"],
        ["admin", "topics", "--limit", "0"], ["admin", "records", "list", "--offset=-1"], ["admin", "audit", "--limit", "0"],
        ["admin", "registrations", "list", "--older-than", "soon"],
        ["admin", "registrations", "list", "--platform", "x"], ["admin", "registrations", "find"],
        ["admin", "registrations", "find", "a", "--token-file", "b"], ["admin", "outbox", "drop"],
        ["admin", "outbox", "drop", "1", "--all"], ["admin", "outbox", "retry", "x"], ["admin", "drain", "--undo", "--wait"],
        ["admin", "trace"], ["admin", "trace", "x"], ["admin", "log-level"], ["admin", "log-level", "loud"], ["admin", "backup"],
        ["admin", "restore", "x"],
        ["admin", "rotate-storage-key"],
        ["client", "query", "--server", "0x04", "--registrant", "0x04"], ["client", "query"], ["serve", "unexpected"],
        ["serve", "--silence-alarm", "soon"],
    ])
    func wrongUsage(arguments: [String]) async throws {
        let ended = try await run(arguments)
        #expect(ended.status == 64)
        // serve names a missing identity beside the wrong option.
        let lines = ended.errors.split(separator: "\n")
        #expect(!lines.isEmpty && lines.allSatisfy { $0.hasPrefix("waku-push: ") }, "\(ended.errors)")
        #expect(ended.output == "")
        #expect(!ended.errors.contains("\u{1B}"))
    }
}
