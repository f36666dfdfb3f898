import Foundation
import TestSupport

/// Runs `waku-push`, or another program, as a process, to its end.
func run(_ arguments: String..., environment: [String: String] = [:]) async throws -> Ended {
    try await run(arguments, environment: environment)
}

func run(_ arguments: [String], program: URL? = nil, environment: [String: String] = [:]) async throws -> Ended {
    let child = try ChildProcess(arguments, program: program, environment: environment, limit: .seconds(240))
    let status = await child.status
    return Ended(status: status, output: child.output, errors: child.errors)
}
