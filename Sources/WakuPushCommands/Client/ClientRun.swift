import ArgumentParser
import Foundation
import PushClient
import StatusProtocol
import UnixSignals
import WakuCrypto

extension Client {
    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Runs a remembered client: registers, advertises, prints what happens.",
            discussion: "It goes on with what other commands with the same --state began, until SIGINT or SIGTERM.")

        @OptionGroup var client: ClientStateOptions

        func run() async throws {
            try await reportingFailures {
                let json = client.json
                try await client.withClient { client in
                    let events = client.events
                    await withTaskGroup(of: Void.self) { group in
                        group.addTask {
                            for await event in events { EventLine(event).print(asJSON: json) }
                        }
                        group.addTask {
                            for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) { return }
                        }
                        await group.next()
                        group.cancelAll()
                    }
                }
            }
        }
    }
}

/// An event as a line.
struct EventLine: Encodable {
    let event: String
    var server: String?
    var registrant: String?
    var installation: String?
    var version: UInt64?
    var devices: Int?
    var rows: Int?
    var tries: Int?
    var seconds: Int64?
    var message: String?
    var reason: String?

    init(_ event: PushClientEvent) {
        switch event {
        case .registered(let server, let version):
            self.init("registered")
            (self.server, self.version) = (server.hex, version)
        case .refused(let server, let refusal):
            self.init("refused")
            (self.server, reason) = (server.hex, refusal.rawValue)
        case .willRetry(let server, let tries, let pause):
            self.init("will-retry")
            (self.server, self.tries, seconds) = (server.hex, tries, pause.components.seconds)
        case .unregistered(let server):
            self.init("unregistered")
            self.server = server.hex
        case .advertised(let rows):
            self.init("advertised")
            self.rows = rows
        case .discovered(let registrant, let devices):
            self.init("discovered")
            (self.registrant, self.devices) = (registrant.hex, devices)
        case .notified(let id, let outcome):
            self.init("notified")
            fill(id, outcome)
        case .gaveUp(let id, let outcome):
            self.init("gave-up")
            fill(id, outcome)
        case .relayFailed(let reason):
            self.init("relay-failed")
            self.reason = reason
        case .storeFailed(let reason):
            self.init("store-failed")
            self.reason = reason
        }
    }

    private init(_ event: String) {
        self.event = event
    }

    private mutating func fill(_ messageID: [UInt8], _ outcome: DeviceOutcome) {
        message = hexString(messageID)
        registrant = outcome.registrant.hex
        installation = outcome.installationID?.string
        switch outcome.result {
        case .notified(let server): self.server = server.hex
        case .notAllowed: reason = "not-allowed"
        case .gaveUp(let why): reason = why.rawValue
        }
    }

    /// `event=registered server=04… version=1`, or a JSON object.
    func print(asJSON: Bool) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { return }
        if asJSON { return Output.line(String(decoding: data, as: UTF8.self)) }
        let fields: [(String, String?)] = [
            ("server", server), ("registrant", registrant), ("installation", installation), ("version", version.map(String.init)),
            ("devices", devices.map(String.init)), ("rows", rows.map(String.init)), ("tries", tries.map(String.init)),
            ("seconds", seconds.map(String.init)), ("message", message), ("reason", reason),
        ]
        let text = fields.compactMap { name, value in value.map { "\(name)=\(Output.printable($0))" } }
        Output.line(([event] + text).joined(separator: " "))
    }
}
