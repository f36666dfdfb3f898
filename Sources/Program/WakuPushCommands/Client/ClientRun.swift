import ArgumentParser
import PushClient
import UnixSignals

extension Client {
    struct Run: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Runs a remembered client: keeps it registered and advertised, and prints what happens.",
            discussion: """
                It goes on with what other commands with the same --state began, until SIGINT or SIGTERM. After kill -9 the next start goes on \
                where it was. A new client neither registers nor sends: client register switches receiving on, client notify sending.

                Events are started, registered, refused, will-retry, unregistered, advertised, discovered, advertisement-rejected, notified, \
                gave-up, no-server-known, relay-failed and store-failed, a line each.

                EXAMPLES
                  waku-push client run --state bob
                  waku-push client run --state bob --json \\
                    --relay /dns4/node.example/tcp/60000/p2p/16Uiu2HA…
                  waku-push client run --state bob --receiving off
                """)

        @OptionGroup var options: ClientRunOptions

        func execute() async throws { try await options.run(StatusPushClient.self) }
    }
}

/// The options of `client run`, and of its version 0.1.
struct ClientRunOptions: ParsableArguments {
    @OptionGroup var client: ClientOptions
    @OptionGroup var state: RememberedClientOptions
    @Option(help: "Switch receiving on, with what was registered last, or off, which ends all registrations. Remembered.")
    var receiving: SwitchArgument?
    @Option(help: "Switch sending on or off. Remembered.") var sending: SwitchArgument?

    /// Prints events until SIGINT or SIGTERM.
    func run<Client: RunnableClient>(_ type: Client.Type) async throws {
        try await RunningClient<Client>.run(state.folder, client) { [json = client.json, receiving, sending] session in
            let (client, events) = (session.client, session.client.events)
            if let receiving { client.setReceiving(receiving == .on) }
            if let sending { client.setSending(sending == .on) }
            // From here on, signals end the command gracefully.
            let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
            let printer = LinePrinter()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await printer.print(ClientEventLine.started(client).text(asJSON: json))
                    for await event in events { try await printer.print(ClientEventLine(event).text(asJSON: json)) }
                }
                group.addTask {
                    for await _ in signals { return }
                }
                defer {
                    printer.stop()
                    group.cancelAll()
                }
                try await group.next()
            }
        }
    }
}
