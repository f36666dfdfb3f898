import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct DemoTests {
    @Test(arguments: [["demo"], ["demo", "--session"]]) func demo(command: [String]) async throws {
        let demo = try await run(command)
        #expect(demo.status == 0)
        #expect(demo.errors == "")
        #expect(demo.output.hasSuffix("All steps followed the protocol.\n"))
        #expect(demo.output.split(separator: "\n").filter { $0.hasPrefix("  ok: ") }.count >= 10)
        #expect(!demo.output.contains("\u{1B}"))
    }
}
