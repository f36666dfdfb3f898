import ArgumentParser
import PushClient
import StatusProtocol

/// Selects the registrant and the client of a version 0.1 command.
struct V01ContactOptions: ParsableArguments {
    @OptionGroup var state: ClientStateOptions
    @OptionGroup var client: ClientOptions
    @Option(
        name: .customLong("server"),
        help: "A push server to query besides those that the registrant advertises, by its public key; repeat it for several.",
        transform: PublicKeyArgument.parse)
    var servers: [PublicKeyArgument] = []
    @OptionGroup(title: "Without --state") var asker: OneShotOptions
    @OptionGroup var registrant: RegistrantOptions

    func validate() throws {
        if state.folder != nil { try state.refuse(["identity": asker.identity != nil]) }
    }

    /// Runs `body` after the client discovered the registrant's devices.
    ///
    /// - Throws: ``CommandFailure``, and errors of `body`.
    func discovering<R: Sendable>(
        _ body: @Sendable @escaping (V01ClientSession, [KnownDevice]) async throws -> R
    ) async throws -> R {
        let (timeout, key) = (client.timeout.duration, try registrant.required().key)
        let discover: @Sendable (V01ClientSession) async throws -> R = { [servers] session in
            let devices = try await session.client.discover(key, askingAlso: servers.map(\.key), timeout: timeout)
            return try await body(session, devices)
        }
        if let folder = state.folder { return try await V01ClientSession.run(folder, client, body: discover) }
        return try await V01ClientSession.run(forgetting: asker.orEphemeral(), client, body: discover)
    }
}

extension ClientV01 {
    struct Query: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Finds a registrant's devices.",
            discussion: """
                The latest advertisement on the registrant's contact code topic counts, out of the node's store. Servers are queried when it has no \
                access token, and those given by --server always. With --state the devices are remembered, and client v0.1 run watches the \
                registrant's advertisements from now on.

                Advertisements are ordered by the time of the Waku message, which is not signed: whoever publishes an old one again makes it the \
                latest, until the registrant's next one, within a day. With --server the answer of that server counts besides.

                EXAMPLES
                  waku-push client v0.1 query --state alice 0x04…
                  waku-push client v0.1 query --server 0x04… 0x04…
                """)

        @OptionGroup var contact: V01ContactOptions

        func execute() async throws {
            let (registrant, end) = (try contact.registrant.required().key, contact.client.end)
            let found = try await contact.discovering { session, devices in await session.found(devices, of: registrant, until: end) }
            try found.report(asJSON: contact.client.json, isV01: true)
        }
    }

    struct Notify: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Has a registrant's devices notified.",
            discussion: """
                The client finds the devices and their servers by itself, and asks a device's next server when one does not acknowledge the request; \
                with --state sending is switched on by that. The same --message-id notifies a device once, however often it is sent to a server.

                EXAMPLES
                  waku-push client v0.1 notify --state alice 0x04… --chat family
                  waku-push client v0.1 notify --server 0x04… 0x04…
                """)

        @OptionGroup var contact: V01ContactOptions
        @OptionGroup var notification: MessageOptions

        func execute() async throws {
            let (content, messageID) = try notification.parsed()
            let outgoing = try OutgoingNotification(
                messageID: messageID, chatID: notification.chat, kind: .message, content: content,
                recipients: [.init(contact.registrant.required().key)])
            let (registrant, end) = (outgoing.recipients[0].registrant, contact.client.end)
            let (outcomes, obstacle) = try await contact.discovering { session, devices in
                session.client.setSending(true)
                guard !devices.isEmpty else { return (session.client.outcomes(withoutDevicesOf: registrant), session.obstacle) }
                return (try await session.client.notify(outgoing, timeout: end.remaining), session.obstacle)
            }
            try outcomes.report(messageID, asJSON: contact.client.json, obstacle, contact.client.timeout)
        }
    }
}
