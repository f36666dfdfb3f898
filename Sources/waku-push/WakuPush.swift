import ArgumentParser
import Foundation

@main
struct WakuPush: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waku-push",
        abstract: "A push notification node for Status-style clients on a Waku network.",
        discussion: """
            It takes encrypted registrations of devices off the network, tells those who may notify them how, and hands their notifications to a \
            gorush server.

            EXAMPLES
              waku-push demo
              waku-push identity new --out id.key
              waku-push serve --identity id.key --data data
              waku-push doctor --identity id.key --data data
              waku-push admin status --data data

            EXIT CODES
              0   success
              \(CommandFailure.Code.list)

            doctor, admin status and admin test-push have two more:
              1   it works, and there is something to look at
              2   it does not work, or is not ready

            SHELL COMPLETIONS
              waku-push --generate-completion-script bash    (or zsh, fish)

            Every option can also be given in the environment: --poll-interval as WAKU_PUSH_POLL_INTERVAL. Lists are separated by commas. \
            What neither has may stand in a configuration file: see waku-push config.
            """,
        version: Version.current,
        subcommands: [
            Serve.self, IdentityCommand.self, Admin.self, Doctor.self, ConfigCommand.self, Client.self, Demo.self, Bench.self,
        ])

    /// As ArgumentParser does it, but for wrong usage: it is told in one line, as every failure is.
    static func main() async {
        do {
            try ConfigurationFile.load(CommandLine.arguments)
            var command = try await asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let failure as CommandFailure {
            CommandFailure.tell(failure.message)
            exit(withError: ExitCode(failure.code.rawValue))
        } catch {
            let code = exitCode(for: error)
            let message = message(for: error)
            guard code != .success, !message.isEmpty else { exit(withError: error) }
            let help = fullMessage(for: error).firstMatch(of: /See '(.+ --help)'/).map { " (see \($0.1))" } ?? ""
            // Choices come as a list, one below the other.
            CommandFailure.tell(message.replacing(/\n[ -]*/, with: " ") + help)
            exit(withError: code)
        }
    }
}
