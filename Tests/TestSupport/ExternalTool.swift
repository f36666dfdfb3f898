import Foundation

/// A system program that a test needs.
package enum ExternalTool {
    /// The tool's location: names are searched for, paths are used unchanged.
    ///
    /// - Throws: ``TestFailure``, which includes the remedy.
    package static func path(of name: String) throws -> String {
        if name.hasPrefix("/"), FileManager.default.isExecutableFile(atPath: name) { return name }
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":") + ["/usr/bin"]
        for folder in folders where FileManager.default.isExecutableFile(atPath: "\(folder)/\(name)") { return "\(folder)/\(name)" }
        throw TestFailure("\(name) is not installed: run Deploy/set-up --tests")
    }

    /// Runs the tool to completion, with a text as its input.
    package static func run(_ name: String, _ arguments: [String], input: String = "") async throws -> Ended {
        let folder = try TemporaryFolder()
        let file = folder.path + "/input"
        try Data(input.utf8).write(to: URL(fileURLWithPath: file))
        let command = #"file=$1; shift; exec "$0" "$@" < "$file""#
        let child = try ChildProcess(
            ["-c", command, try path(of: name), file] + arguments, program: URL(fileURLWithPath: "/bin/sh"), limit: .seconds(300))
        let status = await child.status
        return Ended(status: status, output: child.output, errors: child.errors)
    }
}
