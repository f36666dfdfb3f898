package import ArgumentParser
import Foundation
public import NodeAPI
import NodeAssembly

/// The program `waku-push` as a function, without a process of its own.
public enum WakuPushProgram {
    /// Runs the command that the arguments name. Unlike ArgumentParser's `main`, it reports wrong usage on one line, like every other failure.
    ///
    /// - Parameters:
    ///   - protocols: protocols that its nodes always serve in addition. Their names, numbers, tables, options and metrics must be unique.
    ///   - name: the name of the program, in messages.
    /// - Returns: the exit code.
    public static func run(adding protocols: [ProtocolDescription] = [], name: String = "waku-push") async -> Int32 {
        await NodeAssembly.$added.withValue(protocols) {
            let known = NodeAssembly.protocols
            precondition(Set(known.map(\.name)).count == known.count, "two protocols have the same name")
            precondition(Set(known.map(\.number)).count == known.count, "two protocols have the same number")
            precondition(ServeOption.names.count == ServeOption.all.count, "two options have the same name")
            return await run(WakuPush.self, name: name)
        }
    }

    /// The first argument.
    package static var command: String? { Invocation.current.arguments.dropFirst().first }

    /// Runs another program with the same conventions.
    ///
    /// - Parameter name: the name of the program, in messages.
    /// - Returns: the exit code.
    package static func run<Root: AsyncParsableCommand>(_ root: Root.Type, name: String) async -> Int32 {
        forbidCoreDump()
        endOnSignals()
        return await Invocation.$current.withValue(Invocation.current.named(name)) { await runCommand(of: root) }
    }

    /// A core dump of this process would have its keys, and the contents of messages in progress. Sets the soft limit of its size to 0, which
    /// programs that take dumps from the kernel respect too. The hard limit stays, so that `prlimit --core=unlimited --pid` permits a dump.
    private static func forbidCoreDump() {
        let resource = __rlimit_resource_t(RLIMIT_CORE.rawValue)
        var limits = rlimit()
        guard getrlimit(resource, &limits) == 0 else { return }
        limits.rlim_cur = 0
        setrlimit(resource, &limits)
    }

    /// The kernel drops signals with the default action for the first process of a container, so a stop during a start would be lost. Commands that handle
    /// or ignore a signal replace this.
    private static func endOnSignals() {
        guard getpid() == 1 else { return }
        for number in [SIGTERM, SIGINT, SIGHUP] {
            // nil is SIG_DFL. An ignored signal stays ignored.
            if signal(number, { _exit(128 + $0) }) != nil { signal(number, SIG_IGN) }
        }
    }

    private static func runCommand<Root: AsyncParsableCommand>(of root: Root.Type) async -> Int32 {
        let arguments = Invocation.current.arguments
        do {
            try ConfigurationFile.load(arguments)
            var command = try await Root.asyncParseAsRoot(Serve.readableArguments(Array(arguments.dropFirst())))
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return ExitCode.success.rawValue
        } catch let failure as CommandFailure {
            CommandFailure.report(failure.message)
            return failure.code.rawValue
        } catch {
            return report(cause(of: error, Array(arguments.dropFirst()), root), of: root)
        }
    }

    /// The error of a command line on which `--version` is an option with a value. If another option is invalid, ArgumentParser takes it for the flag that
    /// prints the program's version, and that for a success.
    private static func cause(of error: any Error, _ arguments: [String], _ root: (some ParsableCommand).Type) -> any Error {
        guard root.fullMessage(for: error) == Version.current,
            let index = arguments.firstIndex(where: { $0 == "--version" || $0.hasPrefix("--version=") })
        else { return error }
        let last = arguments[index] == "--version" ? index + 1 : index
        guard arguments.indices.contains(last), last == index || !arguments[last].hasPrefix("-") else { return error }
        var others = arguments
        others.removeSubrange(index...last)
        do { _ = try root.parseAsRoot(others) } catch { return error }
        return error
    }

    /// Replaces `waku-push` in the examples of a help text by the name of the running program.
    private static func named(_ help: String) -> String {
        let name = Invocation.current.program
        return name.hasPrefix("waku-push") ? help : help.replacing(/(^|[^\w\/.-])waku-push(?= [a-z-])/) { "\($0.1)\(name)" }
    }

    /// Corrects the path of commands that share serve's options: ArgumentParser inserts `serve` as a parent command.
    private static func helpCommand(_ text: String) -> String {
        ["config serve check", "config serve show", "serve doctor"].reduce(text) { text, wrong in
            text.replacing(wrong, with: wrong.replacing("serve ", with: ""))
        }
    }

    /// Prints ArgumentParser's text: help and completion scripts on standard output, wrong usage on standard error.
    private static func report(_ error: any Error, of root: (some ParsableCommand).Type) -> Int32 {
        let code = root.exitCode(for: error)
        let text = named(root.fullMessage(for: error, columns: Invocation.current.columns))
        guard code != .success else {
            if !text.isEmpty { Output.text(text) }
            return code.rawValue
        }
        let message = root.message(for: error)
        if !message.isEmpty, let first = Environment.problems.first {
            for failure in Environment.problems { CommandFailure.report(failure.message) }
            CommandFailure.report(message.replacing(/\n[ -]*/, with: " "))
            return first.code.rawValue
        }
        // An exit code without a message: the command has reported its failure.
        guard !message.isEmpty else { return code.rawValue }
        let help = text.firstMatch(of: /See '(.+ --help)'/).map { " (see \(helpCommand(String($0.1))))" } ?? ""
        // ArgumentParser lists alternatives on separate lines.
        CommandFailure.report(message.replacing(/\n[ -]*/, with: " ") + help)
        return code.rawValue
    }
}
