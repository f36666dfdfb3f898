import Foundation
import PushClient
import StatusProtocol
import WakuCrypto

/// What `register`, `unregister` and `notify` do with `--state`.
enum RememberedClient {
    private struct ServerRow: Encodable {
        let server: String
        let state: String
        let version: UInt64?

        init(_ server: PublicKey, _ status: RegistrationStatus) {
            self.server = server.hex
            switch status {
            case .registered(let version): (state, self.version) = ("registered", version)
            case .pending: (state, version) = ("pending", nil)
            case .refused(let reason): (state, version) = (reason.rawValue, nil)
            case .unregistered: (state, version) = ("unregistered", nil)
            }
        }
    }

    static func register(
        _ profile: DeviceProfile, with servers: [PublicKey], timeout: Duration, _ options: ClientStateOptions
    ) async throws {
        let states = try await options.withClient { client in
            client.setReceiving(true)
            return try await client.register(profile, with: servers.map { PushServer(key: $0) }, timeout: timeout)
        }
        try print(states, asJSON: options.json)
        for (server, status) in states {
            switch status {
            case .registered: break
            case .refused(let reason): throw CommandFailure(.data, "server \(server.hex) refused: \(reason.rawValue)")
            case .pending, .unregistered:
                throw CommandFailure(.unavailable, "server \(server.hex) did not answer: waku-push client run goes on trying")
            }
        }
    }

    static func unregister(timeout: Duration, _ options: ClientStateOptions) async throws {
        let states = try await options.withClient { await $0.unregister(timeout: timeout) }
        try print(states, asJSON: options.json)
        for (server, status) in states where status != .unregistered {
            throw CommandFailure(.unavailable, "server \(server.hex) did not answer: waku-push client run goes on trying")
        }
    }

    static func notify(
        _ registrant: PublicKey, chat: String, kind: NotificationKind, content: [UInt8], messageID: [UInt8], _ options: ClientStateOptions
    ) async throws {
        let message = OutgoingNotification(
            messageID: messageID, chatID: chat, kind: kind, content: content, recipients: [.init(registrant)])
        let outcomes = try await options.withClient { client in
            client.setSending(true)
            await client.discover(registrant)
            return try await client.notify(message)
        }
        let lines = outcomes.map { outcome -> EventLine in
            if case .notified = outcome.result {
                EventLine(.notified(messageID: messageID, outcome))
            } else {
                EventLine(.gaveUp(messageID: messageID, outcome))
            }
        }
        for line in lines { line.print(asJSON: options.json) }
        if let reason = lines.lazy.compactMap(\.reason).first { throw CommandFailure(.data, "not all devices were notified: \(reason)") }
    }

    private static func print(_ states: [PublicKey: RegistrationStatus], asJSON: Bool) throws {
        let rows = states.map(ServerRow.init).sorted { $0.server < $1.server }
        if asJSON { return try Output.json(rows) }
        Output.table(["SERVER", "STATE", "VERSION"], rows.map { [$0.server, $0.state, $0.version.map(String.init) ?? "-"] })
    }
}
