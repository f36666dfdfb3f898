import Foundation
import TestSupport

/// Runs the program as a process, to its end.
func run(_ arguments: String..., environment: [String: String] = [:]) async throws -> Ended {
    try await run(arguments, environment: environment)
}

func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> Ended {
    let child = try ChildProcess(arguments, environment: environment, limit: .seconds(240))
    let status = await child.status
    return Ended(status: status, output: child.output, errors: child.errors)
}

struct DeadlinePassed: Error {}

/// Returns once `condition` holds.
func wait(until condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(240)
    while try await !condition() {
        guard ContinuousClock.now < deadline else { throw DeadlinePassed() }
        // Only yielding would occupy a core that the awaited work needs.
        try await Task.sleep(for: .milliseconds(5))
    }
}
