import ArgumentParser
import Foundation

struct WakuPush: AsyncParsableCommand {
    /// With the name of the program: one with protocols of other packages has its own.
    static var configuration: CommandConfiguration {
        var configuration = standard
        configuration.commandName = Invocation.current.program
        return configuration
    }

    private static let standard = CommandConfiguration(
        abstract: "A push notification node for Status-style clients on a Waku network.",
        discussion: """
            The node receives encrypted device registrations from the network, answers queries about them, and posts requested notifications to a \
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

            doctor, admin status, admin health and admin test-push also use:
              1   it works, with warnings
              2   it does not work or is not ready

            SHELL COMPLETIONS
              waku-push --generate-completion-script bash    (or zsh, fish)

            Every option of serve can also be set in the environment, --poll-interval as WAKU_PUSH_POLL_INTERVAL, with lists separated by \
            commas; or in a configuration file: see waku-push config. Other commands use the variables of options that mean the same there, \
            such as WAKU_PUSH_DATA; client commands also use WAKU_PUSH_TIMEOUT and WAKU_PUSH_CLIENT_IDENTITY.
            """,
        version: Version.current,
        subcommands: [
            Serve.self, IdentityCommand.self, Admin.self, Doctor.self, ConfigCommand.self, Client.self, Demo.self, BenchCommand.self,
            SessionCommand.self,
        ])
}
