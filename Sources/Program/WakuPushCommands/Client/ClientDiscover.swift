import ArgumentParser
import PushClient
import WakuCrypto

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
            let end = client.end
            let found = try await ClientSession.run(state.folder, client) { [servers] session in
                session.client.setQueryServers(servers.map { PushServer(key: $0.key) })
                let devices = try await session.client.discover(key, timeout: end.remaining)
                return await session.found(devices, of: key, until: end)
            }
            try found.report(asJSON: client.json)
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

/// The result of a search for a registrant's devices.
struct FoundDevices: Sendable {
    let devices: [KnownDevice]
    /// Whether neither a store nor a server answered, so that the devices are those of an earlier search.
    let areRemembered: Bool
    let flaw: AdvertisementFlaw?
    /// Why no messages are sent or received; nil when a relay is attached.
    let obstacle: String?

    /// Prints the devices.
    ///
    /// - Throws: ``CommandFailure`` when there is none, or nobody answered.
    func report(asJSON: Bool, isV01: Bool = false) throws {
        try KnownDeviceRow.print(devices, areRemembered, asJSON: asJSON, isV01: isV01)
        if devices.isEmpty { throw CommandFailure.noDevice(flaw, obstacle) }
        guard areRemembered else { return }
        let reason = obstacle.map { ": \($0)" } ?? ""
        throw CommandFailure(.unavailable, "no store or server answered: the devices are remembered from an earlier run\(reason)")
    }
}

extension RunningClient {
    /// - Parameters:
    ///   - devices: The result of the client's search.
    ///   - end: How long to wait for an answer: the search returns known devices earlier.
    func found(_ devices: [KnownDevice], of registrant: PublicKey, until end: ContinuousClock.Instant) async -> FoundDevices {
        var (devices, areRemembered) = (devices, false)
        if !devices.isEmpty {
            areRemembered = !(await client.hasAnswer(about: registrant, timeout: end.remaining))
            devices = client.devices(of: registrant)
        }
        return FoundDevices(
            devices: devices, areRemembered: areRemembered, flaw: client.advertisementFlaw(of: registrant), obstacle: obstacle)
    }
}

/// A device at a server. In version 0.1 it has no version.
struct KnownDeviceRow: Encodable {
    let installation, server: String
    let version: UInt64?
    let mayBeNotified: Bool
    /// Known from an earlier search only; nil otherwise.
    let remembered: Bool?

    static func print(_ devices: [KnownDevice], _ areRemembered: Bool, asJSON: Bool, isV01: Bool) throws {
        let rows = devices.map {
            KnownDeviceRow(
                installation: $0.installationID.string, server: $0.server.text, version: isV01 ? nil : $0.version,
                mayBeNotified: $0.isTokenKnown, remembered: areRemembered ? true : nil)
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
