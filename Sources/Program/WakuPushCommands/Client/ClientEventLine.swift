import Foundation
import PushClient
import WakuCrypto

/// An event as a line: `registered server=04… version=1`, or a JSON object with the event's name as `event`.
struct ClientEventLine: Encodable {
    let event: String
    var publicKey: String?
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

    /// The first line of `client run`.
    static func started(_ client: some RunnableClient) -> ClientEventLine {
        var line = ClientEventLine(event: "started")
        line.publicKey = client.publicKey.hex
        line.installation = client.installationID.string
        return line
    }

    private init(event: String) {
        self.event = event
    }

    init(_ event: PushClientEvent) {
        switch event {
        case .registered(let server, let version):
            self.init(event: "registered")
            (self.server, self.version) = (server.hex, version)
        case .refused(let server, let refusal):
            self.init(event: "refused")
            (self.server, reason) = (server.hex, refusal.rawValue)
        case .willRetry(let server, let tries, let pause):
            self.init(event: "will-retry")
            (self.server, self.tries, seconds) = (server.hex, tries, pause.components.seconds)
        case .unregistered(let server):
            self.init(event: "unregistered")
            self.server = server.hex
        case .advertised(let rows):
            self.init(event: "advertised")
            self.rows = rows
        case .discovered(let registrant, let devices):
            self.init(event: "discovered")
            (self.registrant, self.devices) = (registrant.hex, devices)
        case .advertisementRejected(let registrant, let flaw):
            self.init(event: "advertisement-rejected")
            (self.registrant, reason) = (registrant.hex, flaw.rawValue)
        case .notified(let id, let outcome):
            self.init(event: "notified")
            fill(id, outcome)
        case .gaveUp(let id, let outcome):
            self.init(event: "gave-up")
            fill(id, outcome)
        case .noServerKnown(let registrant):
            self.init(event: "no-server-known")
            self.registrant = registrant.hex
        case .relayFailed(let reason):
            self.init(event: "relay-failed")
            self.reason = reason
        case .storeFailed(let reason):
            self.init(event: "store-failed")
            self.reason = reason
        }
    }

    /// The outcome for one device.
    init(_ messageID: [UInt8], _ outcome: DeviceOutcome) {
        if case .notified = outcome.result {
            self.init(.notified(messageID: messageID, outcome))
        } else {
            self.init(.gaveUp(messageID: messageID, outcome))
        }
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

    /// The line without its end.
    func text(asJSON: Bool) throws -> String {
        guard !asJSON else {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return Output.printableJSON(try encoder.encode(self))
        }
        let fields: [(String, String?)] = [
            ("public-key", publicKey), ("server", server), ("registrant", registrant), ("installation", installation),
            ("version", version.map(String.init)), ("devices", devices.map(String.init)), ("rows", rows.map(String.init)),
            ("tries", tries.map(String.init)), ("seconds", seconds.map(String.init)), ("message", message), ("reason", reason),
        ]
        // A reason is a sentence, and therefore comes last.
        return ([event] + fields.compactMap { name, value in value.map { "\(name)=\(Output.printable($0))" } }).joined(separator: " ")
    }

    func print(asJSON: Bool) throws {
        Output.text(try text(asJSON: asJSON))
    }
}
