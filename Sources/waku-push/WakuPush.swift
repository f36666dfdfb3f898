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
              waku-push serve --identity id.key --data data --relay http://127.0.0.1:8645 --gorush http://127.0.0.1:8088
              waku-push admin --data data registrations list

            EXIT CODES
              0 success   64 wrong usage   65 unusable key, database or answer   69 something it needs is unavailable
              73 a file or folder can't be made   77 permission denied

            Every option can also be given in the environment: --poll-interval as WAKU_PUSH_POLL_INTERVAL. Lists are separated by commas.
            """,
        version: Version.current,
        subcommands: [Serve.self, IdentityCommand.self, Admin.self, Client.self, Demo.self])

    static func main() async {
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            // Wrong usage is one line, as everything that goes wrong; --help and --version come this way too.
            guard exitCode(for: error) == .validationFailure else { exit(withError: error) }
            FileHandle.standardError.write(Data("waku-push: \(message(for: error)): see --help\n".utf8))
            exit(withError: ExitCode.validationFailure)
        }
    }
}
