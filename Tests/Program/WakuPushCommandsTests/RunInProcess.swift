import TestSupport
@testable import WakuPushCommands

/// Runs a command in this process, to its end, with arguments, environment and output of its own. Not for `serve` and `demo`, which
/// change the process: its umask, signals and limits.
func run(_ arguments: String..., environment: [String: String] = [:]) async throws -> Ended {
    try await run(arguments, environment: environment)
}

func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> Ended {
    try Task.checkCancellation()
    let (output, errors) = (TextSink(), TextSink())
    let invocation = Invocation(
        arguments: ["waku-push"] + arguments, environment: environment, columns: 80, writeOutput: output.append, writeError: errors.append)
    let status = await Invocation.$current.withValue(invocation) { await WakuPushProgram.run() }
    return Ended(status: status, output: output.text, errors: errors.text)
}

/// The standard output of `body`.
func printed(_ body: () throws -> Void) rethrows -> String {
    let output = TextSink()
    let invocation = Invocation(
        arguments: ["waku-push"], environment: [:], columns: 80, writeOutput: output.append, writeError: { _ in false })
    try Invocation.$current.withValue(invocation) { try body() }
    return output.text
}

/// Runs `body` where the environment is this, and no configuration file is in use.
func withEnvironment<R>(_ environment: [String: String], _ body: () throws -> R) rethrows -> R {
    let invocation = Invocation(
        arguments: ["waku-push"], environment: environment, columns: 80, writeOutput: { _ in false }, writeError: { _ in false })
    return try Invocation.$current.withValue(invocation) { try body() }
}
