import ArgumentParser
import Foundation

/// `waku-push bench`: hands its arguments to `waku-push-bench run`.
struct BenchCommand: ReportingCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measures a node on this machine: runs waku-push-bench run.",
        discussion: """
            waku-push-bench is a program of its own, which is not installed with waku-push: see waku-push-bench run --help. It is expected in the folder \
            of waku-push or on the PATH.

            EXAMPLES
              waku-push bench
              waku-push bench registration request --seconds 5
            """)

    private static let name = "waku-push-bench"

    @Argument(parsing: .captureForPassthrough, help: "Arguments of waku-push-bench run.")
    var arguments: [String] = []

    /// Says so on standard error, and replaces this process.
    func execute() async throws {
        guard let path = Self.path else {
            throw CommandFailure(
                .unavailable,
                "\(Self.name) is neither beside this program nor on the PATH: build it with swift build -c release --product \(Self.name)")
        }
        CommandFailure.report("running \(path)")
        let errorNumber = Invocation.current.replaceProcess(path, [Self.name, "run"] + arguments)
        throw CommandFailure(.unavailable, "\(path) can't be run: \(String(cString: strerror(errorNumber)))")
    }

    /// The program in the folder of this one, or else the first on the PATH.
    private static var path: String? {
        let own = Invocation.current.executable.map { [URL(fileURLWithPath: $0).deletingLastPathComponent().path] } ?? []
        let folders = own + (Invocation.current.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        // An empty entry of the PATH, or a relative one, could be any folder.
        return folders.filter { $0.hasPrefix("/") }.map { $0 + "/" + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
