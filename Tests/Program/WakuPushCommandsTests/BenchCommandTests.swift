import Foundation
import Synchronization
import TestSupport
import Testing

@testable import WakuPushCommands

/// The command that hands over to `waku-push-bench`.
struct BenchCommandTests {
    /// The program that a command would be replaced by.
    private final class Replacement: Sendable {
        let words = Mutex<[String]>([])
    }

    private let folder: TemporaryFolder
    private let replacement = Replacement()
    private let output = TextSink()
    private let errors = TextSink()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func run(_ arguments: [String], beside folder: String, path: String? = nil) async -> Ended {
        let invocation = Invocation(
            arguments: ["waku-push"] + arguments, environment: path.map { ["PATH": $0] } ?? [:], columns: 80,
            writeOutput: output.append, writeError: errors.append,
            replaceProcess: { [replacement] path, arguments in
                replacement.words.withLock { $0 = [path] + arguments }
                return ENOEXEC
            }, executable: folder + "/waku-push")
        let status = await Invocation.$current.withValue(invocation) { await WakuPushProgram.run() }
        return Ended(status: status, output: output.text, errors: errors.text)
    }

    /// - Parameter mode: the permissions of the file.
    private func addProgram(_ mode: Int = 0o755) throws -> String {
        let path = folder.path + "/waku-push-bench"
        let isMade = FileManager.default.createFile(atPath: path, contents: Data(), attributes: [.posixPermissions: mode])
        try #require(isMade)
        return path
    }

    @Test(arguments: [
        (["bench"], ["run"]), (["bench", "query", "--seconds", "5"], ["run", "query", "--seconds", "5"]),
        (["bench", "--json", "--help"], ["run", "--json", "--help"]),
    ])
    func argumentsArePassedOn(arguments: [String], passed: [String]) async throws {
        let path = try addProgram()
        let ended = await run(arguments, beside: folder.path)
        #expect(replacement.words.withLock(\.self) == [path, "waku-push-bench"] + passed)
        #expect(ended.errors.hasPrefix("waku-push: running \(path)\n"))
        // The stand-in for execv returns.
        #expect(ended.status == 69 && ended.errors.hasSuffix("can't be run: Exec format error\n"), "\(ended.errors)")
    }

    @Test func programIsFoundOnThePath() async throws {
        let path = try addProgram()
        _ = await run(["bench"], beside: "/no/such/folder", path: "relative:/no/such/folder:\(folder.path)")
        #expect(replacement.words.withLock(\.self) == [path, "waku-push-bench", "run"])
    }

    @Test func missingProgramIsAnError() async throws {
        _ = try addProgram(0o644)
        // root may execute no file without an execute permission either.
        let ended = await run(["bench"], beside: folder.path, path: "relative::/no/such/folder")
        #expect(ended.status == 69 && replacement.words.withLock(\.self).isEmpty)
        #expect(ended.errors.contains("swift build -c release --product waku-push-bench"), "\(ended.errors)")
        #expect(ended.output == "" && ended.errors.split(separator: "\n").count == 1)
    }
}
