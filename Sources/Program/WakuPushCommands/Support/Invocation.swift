import Foundation

/// The context of one run of the program: arguments, environment and output streams.
///
/// ``current`` is ``process`` unless a task binds it to another value. Tests do that to run many commands concurrently in one process.
struct Invocation: Sendable {
    /// The program, in messages.
    private(set) var program = "waku-push"
    /// The command line, starting with the program's name.
    let arguments: [String]
    let environment: [String: String]
    /// The width of help texts; nil for that of the terminal, or 80.
    let columns: Int?
    /// Writes to standard output. Returns whether all of the text was written.
    let writeOutput: @Sendable (String) -> Bool
    /// Writes to standard error. Returns whether all of the text was written.
    let writeError: @Sendable (String) -> Bool
    /// Executes a file with arguments in place of this process. Returns the error number if that fails.
    private(set) var replaceProcess: @Sendable (_ path: String, _ arguments: [String]) -> Int32 = { _, _ in ENOSYS }
    /// The file that this process executes.
    private(set) var executable: String?
    let options = Environment.State()

    @TaskLocal static var current = process

    private static let process = Invocation(
        arguments: CommandLine.arguments, environment: ProcessInfo.processInfo.environment, columns: nil,
        writeOutput: { StandardStream.write($0, to: StandardStream.output) },
        writeError: { StandardStream.write($0, to: StandardStream.error) },
        replaceProcess: { path, arguments in
            let words = arguments.map { strdup($0) } + [nil]
            defer { for word in words { free(word) } }
            execv(path, words)
            return errno
        },
        executable: try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))

    /// The same invocation of a program with another name.
    func named(_ program: String) -> Invocation {
        var invocation = self
        invocation.program = program
        return invocation
    }
}
