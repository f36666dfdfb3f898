import ArgumentParser
import PushClient
import Core

/// `waku-push client v0.1`.
struct ClientV01: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "v0.1",
        abstract: "A client of version 0.1 of Status' push notifications.",
        discussion: """
            For servers that run with --status-v0.1. The commands are those of waku-push client, with the exit codes of those. An account registers \
            one record with all of its devices; a client changes its own device's part of it.

            --state may be the folder of a client of the deployed protocol: both have the same key, and each its own state, one process at a time. \
            query and notify work without --state too, and remember nothing then.

            EXAMPLES
              waku-push client v0.1 register --state bob --server 0x04… \\
                --device-token 1a2b
              waku-push client v0.1 run --state bob --json
              waku-push client v0.1 query --state alice 0x04…
              waku-push client v0.1 notify --state alice 0x04… --chat family
              waku-push client v0.1 status --state bob
              waku-push client v0.1 unregister --state bob
            """,
        subcommands: [Run.self, Register.self, Query.self, Notify.self, Status.self, Unregister.self])

    static let runCommand = "client v0.1 run"
}

/// A device and its user's notification settings in version 0.1.
struct V01DeviceOptions: ParsableArguments {
    @Option(help: "apn or firebase.") var platform: PlatformArgument = .apn
    @Option(help: "The device token of APNs or Firebase.") var deviceToken: String
    @OptionGroup var blocked: BlockedChatOptions
    @OptionGroup var contacts: ContactOptions
    @Flag(help: "Register, but want no notifications.") var disabled = false

    func validate() throws {
        try requireToken(deviceToken)
        try validateStandardInput([blocked.blockChatFile, contacts.contactFile])
    }

    func profile() throws(CommandFailure) -> V01DeviceProfile {
        var profile = V01DeviceProfile(platform: platform.platform, deviceToken: DeviceToken(deviceToken))
        profile.isEnabled = !disabled
        profile.contactsOnly = contacts.contactsOnly
        profile.contacts = Set(try contacts.keys())
        profile.blockedChats = Set(try blocked.chats())
        return profile
    }
}

extension ClientV01 {
    struct Register: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Registers a device as a part of its account's record.",
            discussion: """
                The record is the same at each of these servers; from any others the device is removed once one of these has accepted it. Then it is \
                advertised; receiving is switched on by that. Nothing is sent when nothing changed, unless --again is given. The account's other devices stay in the record, as the servers return them. \
                Servers that don't answer in time are tried on by client v0.1 run.

                EXAMPLE
                  waku-push client v0.1 register --state bob --server 0x04… --server 0x02… \\
                    --device-token 1a2b --contacts-only --contact 0x04…
                """)

        @OptionGroup var state: RememberedClientOptions
        @OptionGroup var client: ClientOptions
        @Option(
            name: .customLong("server"),
            help: "A push server's public key, full or compressed; repeat it for several. Without any, the servers of before.",
            transform: PublicKeyArgument.parse)
        var servers: [PublicKeyArgument] = []
        @OptionGroup var device: V01DeviceOptions
        @Flag(help: "Send the record although nothing changed: a server may have lost it.") var again = false

        func execute() async throws {
            let profile = try device.profile()
            try await V01ClientSession.changeRegistrations(of: state.folder, client, runCommand: runCommand) { [servers, again] in
                let keys = servers.isEmpty ? $0.wantedServers : servers.map(\.key)
                guard !keys.isEmpty else { throw CommandFailure.noServer }
                return try await $0.register(profile, with: keys, enablesReceiving: true, again: again, timeout: $1)
            }
        }
    }

    struct Unregister: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes the device from its account's record.",
            discussion: """
                The account's registration ends when the record has no other device. Servers that don't answer in time are tried on by client v0.1 run.

                EXAMPLE
                  waku-push client v0.1 unregister --state bob
                """)

        @OptionGroup var state: RememberedClientOptions
        @OptionGroup var client: ClientOptions

        func execute() async throws {
            try await V01ClientSession.unregister(state.folder, client, runCommand: ClientV01.runCommand)
        }
    }
}

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
