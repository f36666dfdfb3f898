import Foundation
import PushClient
import WakuCrypto

/// An event as a line: `registered server=0x04… version=1`, or a JSON object with the event's name as `event`.
struct ClientEventLine: Encodable {
    private(set) var event: String
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
}

extension ClientEventLine {
    /// The first line of `client run`.
    static func started(_ client: some RunnableClient) -> ClientEventLine {
        ClientEventLine(event: "started", publicKey: client.publicKey.text, installation: client.installationID.string)
    }

    init(_ event: PushClientEvent) {
        switch event {
        case .registered(let server, let version): self.init(event: "registered", server: server.text, version: version)
        case .refused(let server, let refusal): self.init(event: "refused", server: server.text, reason: refusal.rawValue)
        case .willRetry(let server, let tries, let pause):
            self.init(event: "will-retry", server: server.text, tries: tries, seconds: pause.components.seconds)
        case .unregistered(let server): self.init(event: "unregistered", server: server.text)
        case .advertised(let rows): self.init(event: "advertised", rows: rows)
        case .discovered(let registrant, let devices): self.init(event: "discovered", registrant: registrant.text, devices: devices)
        case .advertisementRejected(let registrant, let flaw):
            self.init(event: "advertisement-rejected", registrant: registrant.text, reason: flaw.rawValue)
        case .notified(let id, let outcome), .gaveUp(let id, let outcome): self.init(id, outcome)
        case .noServerKnown(let registrant): self.init(event: "no-server-known", registrant: registrant.text)
        case .relayFailed(let reason): self.init(event: "relay-failed", reason: reason)
        case .storeFailed(let reason): self.init(event: "store-failed", reason: reason)
        }
    }

    /// The outcome for one device.
    init(_ messageID: [UInt8], _ outcome: DeviceOutcome) {
        self.init(
            event: "gave-up", registrant: outcome.registrant.text, installation: outcome.installationID?.string,
            message: hexString(messageID))
        switch outcome.result {
        case .notified(let server): (event, self.server) = ("notified", server.text)
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
