import ArgumentParser
import PushClient
import StatusProtocol
import WakuCrypto

extension Client {
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows what a remembered client knows.", discussion: "Nothing is sent. A client that runs has its folder for itself.")

        @OptionGroup var client: ClientStateOptions

        func run() async throws {
            try await reportingFailures {
                let status = StatusReport(try await client.open([]))
                if client.json { return try Output.json(status) }
                Output.fields([
                    ("public key", status.publicKey), ("installation", status.installation), ("receiving", status.receiving ? "on" : "off"),
                    ("sending", status.sending ? "on" : "off"),
                ])
                if !status.servers.isEmpty {
                    Output.line()
                    Output.table(
                        ["SERVER", "STATE", "VERSION", "TRIES", "NEXT TRY"],
                        status.servers.map { server in
                            [
                                server.server, server.state, server.version.map(String.init) ?? "-", String(server.tries),
                                server.nextTryInSeconds.map { "\($0) s" } ?? "-",
                            ]
                        })
                }
                if !status.contacts.isEmpty {
                    Output.line()
                    Output.table(
                        ["CONTACT", "DEVICES", "SERVERS", "TOKENS KNOWN"],
                        status.contacts.map { [$0.registrant, String($0.devices), String($0.servers), String($0.tokensKnown)] })
                }
            }
        }
    }
}

/// What a client knows, without any token.
private struct StatusReport: Encodable {
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

    init(_ client: StatusPushClient) {
        publicKey = client.publicKey.hex
        installation = client.installationID.string
        receiving = client.isReceiving
        sending = client.isSending
        servers = client.registrations.map { key, status in
            let (state, version, tries): (String, UInt64?, Int) =
                switch status {
                case .registered(let version): ("registered", version, 0)
                case .pending(let tries): ("pending", nil, tries)
                case .refused(let reason): (reason.rawValue, nil, 0)
                case .unregistered: ("unregistered", nil, 0)
                }
            let next = client.nextTry(at: key)
            return Server(server: key.hex, state: state, version: version, tries: tries, nextTryInSeconds: next?.components.seconds)
        }.sorted { $0.server < $1.server }
        contacts = client.contacts.map { contact in
            let devices = client.devices(of: contact)
            return Contact(
                registrant: contact.hex, devices: Set(devices.map(\.installationID)).count, servers: Set(devices.map(\.server)).count,
                tokensKnown: devices.count(where: \.isTokenKnown))
        }.sorted { $0.registrant < $1.registrant }
    }
}
