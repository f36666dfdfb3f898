import ArgumentParser
import PushClient
import StatusProtocol

extension Client {
    struct Query: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Asks a server which devices a registrant has. A server that has none does not answer.")

        @OptionGroup var client: ClientOptions
        @Option(
            name: .customLong("server"), help: "The push server's public key, full or compressed.", transform: PublicKeyArgument.parse)
        var servers: [PublicKeyArgument] = []
        @OptionGroup var asker: OneShotOptions
        @OptionGroup var registrant: RegistrantOptions
        @Flag(help: "Show access tokens.") var reveal = false

        func validate() throws { _ = try servers.single(isStateless: true) }

        func execute() async throws {
            let key = try registrant.required().key
            let server = try servers.single(isStateless: true)
            let end = client.end
            let devices = try await client.withClient(asker.orEphemeral()) {
                do throws(PushClientError) {
                    return try await $0.query(key, at: server.key, timeout: end.remaining)
                } catch {
                    guard error.code == .noAnswer else { throw error }
                    throw CommandFailure(.unavailable, "\(error.message), or has no registration of this registrant")
                }
            }
            let rows = devices.map { device in
                Row(
                    installation: device.installationID.string, version: device.version, mayBeNotified: device.accessToken != nil,
                    accessToken: reveal ? device.accessToken?.revealed : nil)
            }
            if client.json { return try Output.json(rows) }
            let header = ["INSTALLATION", "VERSION", "MAY BE NOTIFIED"] + (reveal ? ["ACCESS TOKEN"] : [])
            Output.table(
                header,
                rows.map { row in
                    [row.installation, String(row.version), row.mayBeNotified ? "yes" : "by others only"]
                        + (reveal ? [row.accessToken ?? ""] : [])
                })
        }

        private struct Row: Encodable {
            let installation: String
            let version: UInt64
            let mayBeNotified: Bool
            let accessToken: String?
        }
    }
}
