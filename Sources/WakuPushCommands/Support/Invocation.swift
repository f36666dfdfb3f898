import Foundation

/// The surroundings of one run of the program: its arguments, its environment and where its text goes.
///
/// ``process`` is in force unless a task binds ``current`` to another one. Tests do that to run many commands at once in one process.
struct Invocation: Sendable {
    /// The command line, the program's name first.
    let arguments: [String]
    let environment: [String: String]
    /// The width of help texts; nil: that of the terminal, or 80.
    let columns: Int?
    /// Write a text to standard output and standard error; return whether all of it was written.
    let writeOutput: @Sendable (String) -> Bool
    let writeError: @Sendable (String) -> Bool
    let options = Environment.State()

    @TaskLocal static var current = process

    private static let process = Invocation(
        arguments: CommandLine.arguments, environment: ProcessInfo.processInfo.environment, columns: nil,
        writeOutput: { StandardStream.write($0, to: StandardStream.output) },
        writeError: { StandardStream.write($0, to: StandardStream.error) })

    init(
        arguments: [String], environment: [String: String], columns: Int?, writeOutput: @escaping @Sendable (String) -> Bool,
        writeError: @escaping @Sendable (String) -> Bool
    ) {
        self.arguments = arguments
        self.environment = environment
        self.columns = columns
        self.writeOutput = writeOutput
        self.writeError = writeError
    }
}
