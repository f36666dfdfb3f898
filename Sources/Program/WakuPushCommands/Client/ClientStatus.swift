import ArgumentParser
import PushClient
import StatusProtocol
import WakuCrypto

extension Client {
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows what a remembered client knows.",
            discussion: """
                Of each server: whether the device is registered there, with which version, after how many tries, and when the next one is. Of each \
                contact: devices, servers, and for how many of them the access token is known. Nothing is sent: the options for the \
                network are accepted, as by the other commands, and not used. A client that runs has its folder for itself.

                EXAMPLES
                  waku-push client status --state bob
                  waku-push client status --state bob --public-key
                """)

        @OptionGroup var state: ClientStateOptions
        @OptionGroup var client: ClientOptions

        @Flag(help: "Print the client's public key alone.")
        var publicKey = false

        func validate() throws {
            _ = try state.required()
            if publicKey, client.json { throw ValidationError("give one of --json and --public-key") }
        }

        func run() async throws {
            try await reportingFailures {
                let folder = try state.required()
                try folder.expectClient()
                let report = ClientStatusReport(try await folder.open([]))
                if publicKey { return Output.line("0x" + report.publicKey) }
                if client.json { try Output.json(report) } else { report.print() }
            }
        }
    }
}

/// The state of a client, without tokens.
struct ClientStatusReport: Encodable {
    struct Server: Encodable {
        let server: String
        let state: String
        let version: UInt64?
        let tries: Int
        let nextTryInSeconds: Int64?
    }

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
    let servers: [Server]
    let contacts: [Contact]

    init(_ client: some RunnableClient) {
        publicKey = client.publicKey.hex
        installation = client.installationID.string
        receiving = client.isReceiving
        sending = client.isSending
        servers = client.registrations.map { key, status in
            let row = ServerStateRow(key, status)
            return Server(
                server: row.server, state: row.state, version: row.version, tries: row.tries,
                nextTryInSeconds: client.nextTry(at: key)?.components.seconds)
        }.sorted { $0.server < $1.server }
        contacts = client.contacts.map { contact in
            let devices = client.devices(of: contact)
            return Contact(
                registrant: contact.hex, devices: Set(devices.map(\.installationID)).count, servers: Set(devices.map(\.server)).count,
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
        if !contacts.isEmpty {
            Output.line()
            Output.table(
                ["CONTACT", "DEVICES", "SERVERS", "TOKENS KNOWN"],
                contacts.map { [$0.registrant, String($0.devices), String($0.servers), String($0.tokensKnown)] })
        }
    }
}
