import ArgumentParser
import PushClient
import StatusProtocol
import WakuCrypto

extension Client {
    struct Status: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows what a remembered client knows.",
            discussion: """
                Of each server: whether the device is registered there, with which version, after how many tries, and when the next one is. Of each \
                contact: devices, servers, and for how many of them the access token is known. A client that runs has its folder for \
                itself.

                Nothing is sent without --verify, which asks each server for the client's own registration, and compares version and access \
                token. --ping also has each server notify the device. The command fails if a server does not have the registration.

                EXAMPLES
                  waku-push client status --state bob
                  waku-push client status --state bob --verify
                  waku-push client status --state bob --ping --json
                  waku-push client status --state bob --public-key
                """)

        @OptionGroup var state: RememberedClientOptions
        @OptionGroup var client: ClientOptions

        @Flag(help: "Print the client's public key alone.")
        var publicKey = false

        @Flag(help: "Ask each server for the client's registration.")
        var verify = false

        @Flag(help: "Verify, and have each server notify the device.")
        var ping = false

        func validate() throws {
            if publicKey, verify || ping { throw ValidationError("--public-key prints the key alone: leave out --verify and --ping") }
            if publicKey, client.json { throw ValidationError("give one of --json and --public-key") }
        }

        func execute() async throws {
            let folder = state.folder
            try folder.expectClient()
            if verify || ping { return try await printVerified(folder) }
            let report = ClientStatusReport(try await folder.open([]))
            if publicKey { return Output.line(report.publicKey) }
            if client.json { try Output.json(report) } else { report.print() }
        }

        private func printVerified(_ folder: ClientFolder) async throws {
            let report = try await ClientSession.run(folder, client) { [ping, client] session in
                let end = client.end
                let timeout = client.timeout.duration
                let checks = try await session.client.verifyRegistrations(ping: ping, timeout: ping ? timeout / 2 : timeout)
                // Servers that lost the registration get it again.
                if checks.contains(where: { !$0.isHealthy }) { await session.client.waitUntilSettled(timeout: end.remaining) }
                var report = ClientStatusReport(session.client)
                report.checks = checks.map(RegistrationCheckRow.init)
                return report
            }
            if client.json { try Output.json(report) } else { report.print() }
            let checks = report.checks ?? []
            guard !checks.isEmpty else { throw CommandFailure(.data, "the device is not registered: register it with client register") }
            if let wrong = checks.first(where: { !$0.isHealthy }) {
                throw CommandFailure(wrong.passes ? .unavailable : .data, "server \(wrong.server.prefix(14))…: \(wrong.problem)")
            }
        }
    }
}

/// The state of a client, without tokens.
struct ClientStatusReport: Encodable {
    struct Contact: Encodable {
        let registrant: String
        let devices: Int
        let servers: Int
        let tokensKnown: Int
    }

    let publicKey: String
    let installation: String
    let receiving: Bool
    let sending: Bool
    let servers: [ServerStateRow]
    let contacts: [Contact]
    /// The servers' answers; nil if they were not asked.
    var checks: [RegistrationCheckRow]?

    init(_ client: some RunnableClient) {
        publicKey = client.publicKey.text
        installation = client.installationID.string
        receiving = client.isReceiving
        sending = client.isSending
        servers = client.registrations.map { key, status in
            var row = ServerStateRow(key, status)
            row.nextTryInSeconds = client.nextTry(at: key)?.components.seconds
            return row
        }.sorted { $0.server < $1.server }
        contacts = client.contacts.map { contact in
            let devices = client.devices(of: contact)
            return Contact(
                registrant: contact.text, devices: Set(devices.map(\.installationID)).count, servers: Set(devices.map(\.server)).count,
                tokensKnown: devices.count(where: \.isTokenKnown))
        }.sorted { $0.registrant < $1.registrant }
    }

    func print() {
        Output.fields([
            ("public key", publicKey), ("installation", installation), ("receiving", receiving ? "on" : "off"),
            ("sending", sending ? "on" : "off"),
        ])
        if !servers.isEmpty {
            Output.line()
            Output.table(
                ["SERVER", "STATE", "VERSION", "TRIES", "NEXT TRY"],
                servers.map { server in
                    [
                        server.server, server.state, server.version.map(String.init) ?? "-", String(server.tries),
                        server.nextTryInSeconds.map { "in \($0) s" } ?? "-",
                    ]
                })
        }
        if let checks, !checks.isEmpty {
            Output.line()
            Output.table(["SERVER", "REGISTRATION", "NOTIFICATION"], checks.map { [$0.server, $0.finding, $0.ping ?? "-"] })
        }
        if !contacts.isEmpty {
            Output.line()
            Output.table(
                ["CONTACT", "DEVICES", "SERVERS", "TOKENS KNOWN"],
                contacts.map { [$0.registrant, String($0.devices), String($0.servers), String($0.tokensKnown)] })
        }
    }
}
