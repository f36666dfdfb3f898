import ArgumentParser

/// The program `waku-push`, without its process.
package enum WakuPushProgram {
    /// Runs the command that the arguments name. Differs from ArgumentParser's own `main` in how wrong usage is reported: on one line, like every
    /// failure.
    ///
    /// - Returns: the exit code.
    package static func run() async -> Int32 {
        let arguments = Invocation.current.arguments
        do {
            try ConfigurationFile.load(arguments)
            var command = try await WakuPush.asyncParseAsRoot(Array(arguments.dropFirst()))
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return ExitCode.success.rawValue
        } catch let failure as CommandFailure {
            CommandFailure.tell(failure.message)
            return failure.code.rawValue
        } catch {
            return report(error)
        }
    }

    /// Prints what ArgumentParser has to say: help and completion scripts on standard output, wrong usage on standard error.
    private static func report(_ error: any Error) -> Int32 {
        let code = WakuPush.exitCode(for: error)
        let text = WakuPush.fullMessage(for: error, columns: Invocation.current.columns)
        guard code != .success else {
            if !text.isEmpty { Output.line(text) }
            return code.rawValue
        }
        let message = WakuPush.message(for: error)
        // An exit code without a message: the command has reported its failure.
        guard !message.isEmpty else { return code.rawValue }
        let help = text.firstMatch(of: /See '(.+ --help)'/).map { " (see \($0.1))" } ?? ""
        // Choices come as a list, one below the other.
        CommandFailure.tell(message.replacing(/\n[ -]*/, with: " ") + help)
        return code.rawValue
    }
}
