import Foundation
import TestSupport

/// What a process left.
struct Ended: Sendable {
    let status: Int32
    let output: String
    let errors: String

    /// Standard error, when it is one line as all failures are told; else nil.
    var failure: String? {
        guard errors.hasPrefix("waku-push: "), errors.hasSuffix("\n"), errors.filter(\.isNewline).count == 1 else { return nil }
        return String(errors.dropFirst("waku-push: ".count).dropLast())
    }

    func json<T: Decodable>(_ type: T.Type = T.self) throws -> T {
        try JSONDecoder().decode(type, from: Data(output.utf8))
    }

    /// Of lines that begin with a name, two blanks or more, and a value.
    func field(_ name: String) -> String? {
        for line in output.split(separator: "\n") where line.hasPrefix(name + "  ") {
            return line.dropFirst(name.count).trimmingCharacters(in: .whitespaces)
        }
        return nil
    }

    /// Lines of a table, cell by cell.
    var rows: [[String]] {
        output.split(separator: "\n").map { line in
            line.replacing("  ", with: "\t").split(separator: "\t").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }
}

/// Runs the program to its end.
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
    let deadline = ContinuousClock.now + .seconds(60)
    while try await !condition() {
        guard ContinuousClock.now < deadline else { throw DeadlinePassed() }
        // Yielding alone would take a core away from what is waited for.
        try await Task.sleep(for: .milliseconds(5))
    }
}
