import Foundation

/// The context of one run of the program: arguments, environment and output streams.
///
/// ``current`` is ``process`` unless a task binds it to another value. Tests do that to run many commands concurrently in one process.
struct Invocation: Sendable {
    /// The command line, starting with the program's name.
    let arguments: [String]
    let environment: [String: String]
    /// The width of help texts; nil for that of the terminal, or 80.
    let columns: Int?
    /// Writes to standard output. Returns whether all of the text was written.
    let writeOutput: @Sendable (String) -> Bool
    /// Writes to standard error. Returns whether all of the text was written.
    let writeError: @Sendable (String) -> Bool
    let options = Environment.State()

    @TaskLocal static var current = process

    private static let process = Invocation(
        arguments: CommandLine.arguments, environment: ProcessInfo.processInfo.environment, columns: nil,
        writeOutput: { StandardStream.write($0, to: StandardStream.output) },
        writeError: { StandardStream.write($0, to: StandardStream.error) })
}
