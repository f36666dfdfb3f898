import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct DemoTests {
    @Test func demo() async throws {
        check(try await run("demo"))
    }

    @Test func webPushDemo() async throws {
        check(try await run("demo", "--web-push"))
    }

    @Test func sessionDemo() async throws {
        check(try await run(["session-demo"], program: ChildProcess.built("waku-push-bench")))
    }

    @Test func anInterruptedDemoLeavesNoFolder() async throws {
        let folder = try TemporaryFolder()
        let demo = try ChildProcess(["demo"], environment: ["TMPDIR": folder.path], limit: .seconds(120))
        try await eventually { demo.lines.contains { $0.hasPrefix("Started the loopback relay") } || !demo.isRunning }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1)
        demo.send(SIGINT)
        #expect(await demo.status == -SIGINT)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    }

    private func check(_ demo: Ended) {
        #expect(demo.status == 0)
        #expect(demo.errors == "")
        #expect(demo.output.hasSuffix("All steps followed the protocol.\n"))
        #expect(demo.output.split(separator: "\n").filter { $0.hasPrefix("  ok: ") }.count >= 10)
        #expect(!demo.output.contains("\u{1B}"))
    }
}
