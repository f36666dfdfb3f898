import ArgumentParser

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

    @Argument(parsing: .captureForPassthrough, help: "Arguments of waku-push-bench run.")
    var arguments: [String] = []

    func execute() async throws {
        try SiblingProgram.replaceProcess(["run"] + arguments)
    }
}
