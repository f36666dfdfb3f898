import ArgumentParser
import PushClient
import StatusProtocol
import WakuCrypto

extension Client {
    struct Notify: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Has a registrant's devices notified.",
            discussion: """
                With --state the client finds the devices and their servers by itself, and falls back to a device's next server when one does not \
                answer; sending is switched on by that, and each --server is queried besides those that advertisements name. Without --state it asks --server for the access tokens first. The same --message-id \
                notifies a device once, however often it is sent.

                EXAMPLES
                  waku-push client notify --state alice 0x04… --chat family
                  waku-push client notify --state alice --server 0x04… 0x04…
                  waku-push client notify --server 0x04… --registrant 0x04…
                """)

        @OptionGroup var state: ClientStateOptions
        @OptionGroup var client: ClientOptions
        @Option(
            name: .customLong("server"),
            help:
                "A push server's public key, full or compressed: without --state the only one, with it one to query; repeat it for several.",
            transform: PublicKeyArgument.parse)
        var servers: [PublicKeyArgument] = []
        @OptionGroup var asker: OneShotOptions
        @OptionGroup var registrant: RegistrantOptions
        @Option(help: "message, mention, join-community or contact-request.") var kind: Kind = .message
        @OptionGroup var notification: MessageOptions

        enum Kind: String, ExpressibleByArgument, CaseIterable {
            case message
            case mention
            case joinCommunity = "join-community"
            case contactRequest = "contact-request"

            var notificationKind: NotificationKind {
                switch self {
                case .message: .message
                case .mention: .mention
                case .joinCommunity: .requestToJoinCommunity
                case .contactRequest: .contactRequest
                }
            }
        }

        func validate() throws {
            if state.folder == nil {
                _ = try servers.single()
            } else {
                try state.refuse(["identity": asker.identity != nil])
            }
        }

        func execute() async throws {
            let (content, messageID) = try notification.parsed()
            let registrant = try registrant.required().key
            if let folder = state.folder {
                try await notify(registrant, content: content, messageID: messageID, rememberedIn: folder)
            } else {
                try await notify(registrant, content: content, messageID: messageID, at: servers.single().key)
            }
        }

        // MARK: With --state

        private func notify(_ registrant: PublicKey, content: [UInt8], messageID: [UInt8], rememberedIn folder: ClientFolder) async throws {
            let message = OutgoingNotification(
                messageID: messageID, chatID: notification.chat, kind: kind.notificationKind, content: content,
                recipients: [.init(registrant)])
            let end = client.end
            let (outcomes, obstacle) = try await ClientSession.run(folder, client) { [servers] session in
                session.client.setQueryServers(servers.map { PushServer(key: $0.key) })
                session.client.setSending(true)
                let devices = try await session.client.discover(registrant, timeout: end.remaining)
                guard !devices.isEmpty else { return (session.client.outcomes(withoutDevicesOf: registrant), session.obstacle) }
                return (try await session.client.notify(message, timeout: end.remaining), session.obstacle)
            }
            try outcomes.report(messageID, asJSON: client.json, obstacle, client.timeout)
        }

        // MARK: Without --state

        private func notify(_ registrant: PublicKey, content: [UInt8], messageID: [UInt8], at server: PublicKey) async throws {
            let identity = try asker.orEphemeral()
            let author = StatusHashes.author(identity.publicKey)
            let chatID = StatusHashes.chat(notification.chat)
            let end = client.end
            let reports = try await client.withClient(identity) { [kind] pushClient in
                let devices = try await pushClient.query(registrant, at: server, timeout: end.remaining)
                let notifications = devices.compactMap { device in
                    device.accessToken.map {
                        PushNotification(
                            accessToken: $0, chatID: chatID, publicKey: KeyHash(of: registrant).bytes,
                            installationID: device.installationID, message: content, kind: kind.notificationKind, author: author)
                    }
                }
                guard !notifications.isEmpty else {
                    throw CommandFailure(.data, "none of the devices may be notified by this key: their owner did not allow it")
                }
                return try await pushClient.notify(notifications, messageID: messageID, at: server, timeout: end.remaining)
            }
            let rows = reports.map { Row(installation: $0.installationID.string, success: $0.error == nil, error: $0.error?.name) }
            if client.json {
                try Output.json(rows)
            } else {
                Output.table(["INSTALLATION", "RESULT"], rows.map { [$0.installation, $0.error ?? "success"] })
            }
            if let failure = CommandFailure(reports.compactMap(\.error)) { throw failure }
        }

        private struct Row: Encodable {
            let installation: String
            let success: Bool
            let error: String?
        }
    }
}

extension CommandFailure {
    /// The failure of a request with these errors of devices; nil if there are none. An error that may pass takes precedence.
    init?(_ errors: [PushNotificationReport.ErrorType]) {
        guard let error = errors.first(where: \.passes) ?? errors.first else { return nil }
        self.init(error.passes ? .unavailable : .data, "not all devices were notified: \(error.name)")
    }
}

/// The message to notify devices of.
struct MessageOptions: ParsableArguments {
    @Option(help: "The chat's id: devices get its hash.") var chat = "waku-push"
    @Option(help: "The encrypted message, in hex.") var message = ""
    @Option(help: "The message's id, in hex. [default: 32 random bytes]") var messageId: String?

    private static let form = "must be an even number of hexadecimal digits, without 0x"

    func parsed() throws(CommandFailure) -> (content: [UInt8], messageID: [UInt8]) {
        guard let content = bytes(hex: message) else { throw CommandFailure(.usage, "--message \(Self.form)") }
        guard let messageID = messageId.map({ bytes(hex: $0) }) ?? randomBytes(32), !messageID.isEmpty else {
            throw CommandFailure(.usage, "--message-id \(Self.form)")
        }
        return (content, messageID)
    }
}

extension [DeviceOutcome] {
    /// Prints the outcomes of a message.
    ///
    /// - Parameters:
    ///   - asJSON: Whether to print a JSON object per line.
    ///   - obstacle: Why no messages are sent or received; nil when a relay is attached.
    ///   - timeout: How long the command waited for servers.
    /// - Throws: ``CommandFailure`` when not all devices were notified: `unavailable` if a later attempt may succeed for one of them. Devices whose
    ///   owner allows only others to notify them count when no other device was notified.
    func report(_ messageID: [UInt8], asJSON: Bool, _ obstacle: String?, _ timeout: DurationArgument) throws {
        for outcome in self { try ClientEventLine(messageID, outcome).print(asJSON: asJSON) }
        guard !isEmpty else {
            let reason = obstacle ?? "none is advertised, and no server that answered has one"
            throw CommandFailure(.unavailable, "nobody was notified: no device is known: \(reason)")
        }
        let reasons = compactMap { outcome -> DeviceOutcome.GiveUpReason? in
            if case .gaveUp(let reason) = outcome.result { reason } else { nil }
        }
        if let reason = reasons.first(where: { $0 != .notRegistered }) {
            let explanation =
                reason == .cancelled
                ? "no server confirmed it within \(timeout.description) (INTERNAL_ERROR, or no answer), and one may still notify: "
                    + "a repetition with --message-id \(hexString(messageID)) notifies once" : reason.explanation
            throw CommandFailure(.unavailable, "not all devices were notified: \(obstacle ?? explanation)")
        }
        if let reason = reasons.first { throw CommandFailure(.data, "not all devices were notified: \(reason.explanation)") }
        guard contains(where: { if case .notified = $0.result { true } else { false } }) else {
            throw CommandFailure(.data, "none of the devices may be notified by this key: their owner did not allow it")
        }
    }
}

extension DeviceOutcome.GiveUpReason {
    fileprivate var explanation: String {
        switch self {
        case .noDevice: "no device to notify is known"
        case .noServerKnown: "no server of the device is known"
        case .notRegistered: "no server has the device any more: the registrant unregistered, or registers with other servers"
        case .noServer: "no server did it: they did not answer, or failed"
        case .expired: "the message is too old"
        case .cancelled: "it was cancelled"
        }
    }
}
