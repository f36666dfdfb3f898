import ArgumentParser
import PushClient

extension ClientV01 {
    struct Run: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Runs a remembered client: keeps it registered and advertised, and prints what happens.",
            discussion: """
                It goes on with what other commands with the same --state began, until SIGINT or SIGTERM. After kill -9 the next start goes on \
                where it was. The events are those of client run.

                EXAMPLES
                  waku-push client v0.1 run --state bob --json
                  waku-push client v0.1 run --state bob --receiving off
                """)

        @OptionGroup var options: ClientRunOptions

        func execute() async throws { try await options.run(StatusV01PushClient.self) }
    }

    struct Status: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows what a remembered client knows.",
            discussion: """
                As client status does. Nothing is sent: the options for the network are accepted and not used. A client that runs has its folder for itself.

                EXAMPLE
                  waku-push client v0.1 status --state bob
                """)

        @OptionGroup var state: RememberedClientOptions
        @OptionGroup var client: ClientOptions

        func execute() async throws {
            let folder = state.folder
            try folder.expectClient()
            let report = ClientStatusReport(try await folder.open(as: StatusV01PushClient.self, []))
            if client.json { try Output.json(report) } else { report.print() }
        }
    }
}
