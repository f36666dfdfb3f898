import ArgumentParser
import PushClient
import StatusProtocol

extension Client {
    struct Unregister: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends a registration.",
            discussion: """
                With --state the client ends its registrations with all servers and takes its advertisement back; servers that don't answer in time \
                are tried on by client run.

                EXAMPLES
                  waku-push client unregister --state bob
                  waku-push client unregister --server 0x04… --identity bob.key \\
                    --installation … --version 2
                """)

        @OptionGroup var state: ClientStateOptions
        @OptionGroup var client: ClientOptions
        @Option(
            name: .customLong("server"), help: "Without --state: the push server's public key, full or compressed.",
            transform: PublicKeyArgument.parse)
        var servers: [PublicKeyArgument] = []
        @OptionGroup(title: "Without --state") var owner: OneShotOptions
        @OptionGroup(title: "Without --state") var oneShot: OneShotUnregistrationOptions

        struct OneShotUnregistrationOptions: ParsableArguments {
            @Option(help: "The installation's id.") var installation: String?
            @Option(help: "Above the registered version.") var version: UInt64?
        }

        func validate() throws {
            guard state.folder != nil else {
                _ = try servers.single()
                guard oneShot.installation != nil else {
                    throw ValidationError("Missing expected argument '--installation <installation>'")
                }
                guard oneShot.version != nil else { throw ValidationError("Missing expected argument '--version <version>'") }
                try OneShotOptions.check(installation: oneShot.installation, version: oneShot.version)
                return
            }
            try state.refuse([
                "server": !servers.isEmpty, "identity": owner.identity != nil, "installation": oneShot.installation != nil,
                "version": oneShot.version != nil,
            ])
        }

        func execute() async throws {
            if let folder = state.folder {
                return try await ClientSession.unregister(folder, client, runCommand: "client run")
            }
            guard let installation = oneShot.installation, let version = oneShot.version else { return }
            let id = InstallationID(installation)
            let server = try servers.single().key
            let end = client.end
            let error = try await client.withClient(owner.required()) {
                try await $0.unregister(id, version: version, with: server, timeout: end.remaining)
            }
            try RegistrationResult.print(error, installation: id, version: version, asJSON: client.json)
        }
    }
}

extension RunningClient {
    /// Ends the registrations of the client of a folder.
    static func unregister(_ folder: ClientFolder, _ options: ClientOptions, runCommand: String) async throws {
        try folder.expectClient()
        try await changeRegistrations(of: folder, options, runCommand: runCommand, mayBeRefused: true) {
            // Otherwise the client would advertise its devices once more at its start.
            $0.setReceiving(false)
        } by: {
            try await $0.unregister(timeout: $1)
        }
    }
}
