import ArgumentParser
import PushClient

extension Client {
    struct Discover: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Finds a registrant's devices and remembers them.",
            discussion: """
                The latest advertisement of each device on the registrant's contact code topic counts, out of the node's store. Servers are queried \
                when there is none, or when a known device is not in it any more: those that the client is registered with, and each --server. From now on client run watches the registrant's \
                advertisements.

                EXAMPLES
                  waku-push client discover --state alice 0x04…
                  waku-push client discover --state alice --server 0x04… 0x04…
                """)

        @OptionGroup var state: RememberedClientOptions
        @OptionGroup var client: ClientOptions
        @Option(
            name: .customLong("server"), help: "A push server to query, by its public key, full or compressed; repeat it for several.",
            transform: PublicKeyArgument.parse)
        var servers: [PublicKeyArgument] = []
        @OptionGroup var registrant: RegistrantOptions

        func execute() async throws {
            let key = try registrant.required().key
            let found = try await ClientSession.run(state.folder, client) { [client, servers] session in
                session.client.setQueryServers(servers.map { PushServer(key: $0.key) })
                let devices = try await session.client.discover(key, timeout: client.timeout.duration)
                return (devices: devices, flaw: session.client.advertisementFlaw(of: key), obstacle: session.obstacle)
            }
            try KnownDeviceRow.print(found.devices, asJSON: client.json)
            if found.devices.isEmpty { throw CommandFailure.noDevice(found.flaw, found.obstacle) }
        }
    }
}

extension AdvertisementFlaw {
    var explanation: String {
        switch self {
        case .unreadable: "is damaged"
        case .foreignSignature: "is signed by another key"
        case .badRow: "has a row without server key or with a wrong grant"
        }
    }
}

/// A device at a server. In version 0.1 it has no version.
struct KnownDeviceRow: Encodable {
    let installation, server: String
    let version: UInt64?
    let mayBeNotified: Bool

    static func print(_ devices: [KnownDevice], asJSON: Bool, isV01: Bool = false) throws {
        let rows = devices.map {
            KnownDeviceRow(
                installation: $0.installationID.string, server: $0.server.hex, version: isV01 ? nil : $0.version,
                mayBeNotified: $0.isTokenKnown)
        }
        if asJSON { return try Output.json(rows) }
        guard !rows.isEmpty else { return }
        Output.table(
            ["INSTALLATION"] + (isV01 ? [] : ["VERSION"]) + ["MAY BE NOTIFIED", "SERVER"],
            rows.map { row in
                [row.installation] + (row.version.map { [String($0)] } ?? [])
                    + [row.mayBeNotified ? "yes" : isV01 ? "no" : "by others only", row.server]
            })
    }
}
