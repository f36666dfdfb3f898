import ArgumentParser
import PushClient
import StatusProtocol
import WakuCrypto

extension Client {
    struct Discover: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Finds somebody's devices, and remembers them.",
            discussion: "The latest advertisement counts; servers are asked when it tells of no device.")

        @OptionGroup var client: ClientStateOptions
        @Argument(help: "The public key of whom to find.") var registrant: PublicKeyArgument
        @Option(help: "How long to wait for answers.") var timeout = DurationArgument("10s", .seconds(10))

        func run() async throws {
            try await reportingFailures {
                let devices = try await client.withClient { [registrant, timeout] in
                    await $0.discover(registrant.key, timeout: timeout.duration)
                }
                try DeviceRow.print(devices, asJSON: client.json)
                if devices.isEmpty {
                    throw CommandFailure(.unavailable, "no device is known: nobody advertised one, and no server answered")
                }
            }
        }
    }
}

/// A device at a server.
struct DeviceRow: Encodable {
    let installation: String
    let server: String
    let version: UInt64
    let mayBeNotified: Bool

    init(_ device: KnownDevice) {
        installation = device.installationID.string
        server = device.server.hex
        version = device.version
        mayBeNotified = device.isTokenKnown
    }

    static func print(_ devices: [KnownDevice], asJSON: Bool) throws {
        let rows = devices.map(DeviceRow.init)
        if asJSON { return try Output.json(rows) }
        Output.table(
            ["INSTALLATION", "VERSION", "MAY BE NOTIFIED", "SERVER"],
            rows.map { [Output.printable($0.installation), String($0.version), $0.mayBeNotified ? "yes" : "by others only", $0.server] })
    }
}
