import ArgumentParser
import Foundation
import PushClient
import StatusProtocol
import WakuCrypto

extension Client {
    struct Register: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Registers a device.",
            discussion: """
                With --state it is registered with these servers, unregistered from any others once one of these has accepted it, and advertised; \
                receiving is switched on by that. Nothing is sent when nothing changed, unless --again is given. Each call replaces all preferences: those that are left out are \
                the default again. The client keeps installation id, access token and version itself: a contact who lost \
                the right to notify gets no new token. Servers that don't answer in time are tried on by client run.

                EXAMPLES
                  waku-push client register --state bob --server 0x04… --server 0x02… \\
                    --device-token 1a2b --apn-topic im.status.ethereum \\
                    --contacts-only --contact 0x04… --mute-chat work
                  waku-push client register --server 0x04… --identity bob.key \\
                    --device-token 1a2b --apn-topic im.status.ethereum
                """)

        @OptionGroup var state: ClientStateOptions
        @OptionGroup var client: ClientOptions
        @Option(
            name: .customLong("server"),
            help:
                "The push server's public key, full or compressed; for --web-push with the server's VAPID key: KEY,vapid=BASE64URL. With --state repeat it for several; without any, the servers of before.",
            transform: ServerArgument.parse)
        var servers: [ServerArgument] = []
        @OptionGroup var preferences: DevicePreferencesOptions
        @Flag(help: "Send the registration although nothing changed: a server may have lost it. With --state only.") var again = false
        @OptionGroup(title: "Without --state") var owner: OneShotOptions
        @OptionGroup(title: "Without --state") var oneShot: OneShotRegistrationOptions

        struct OneShotRegistrationOptions: ParsableArguments {
            @Option(help: "The installation's id. [default: a new UUID]") var installation: String?
            @Option(help: "The access token that senders must present, a UUID. [default: a new one]") var accessToken: String?
            @Option(help: "The registration's version: above the one registered before. [default: 1]") var version: UInt64?
            @Option(
                name: .customLong("allow"),
                help: "A public key that may have the access token; repeat it for more. By default everyone may.",
                transform: PublicKeyArgument.parse)
            var allowed: [PublicKeyArgument] = []
        }

        func validate() throws {
            guard state.folder != nil else {
                guard !again else { throw ValidationError("--again is for --state: without it every registration is sent") }
                _ = try servers.single()
                try OneShotOptions.check(installation: oneShot.installation, version: oneShot.version)
                guard oneShot.accessToken.map({ AccessToken($0).isUUID }) ?? true else {
                    throw ValidationError("--access-token must be a UUID")
                }
                return
            }
            try state.refuse([
                "identity": owner.identity != nil, "installation": oneShot.installation != nil, "access-token": oneShot.accessToken != nil,
                "version": oneShot.version != nil, "allow": !oneShot.allowed.isEmpty,
            ])
        }

        func execute() async throws {
            if let folder = state.folder { return try await register(folder) }
            let server = try servers.single()
            var profile = try preferences.profile()
            try preferences.requireApp()
            if !oneShot.allowed.isEmpty {
                profile.contactsOnly = true
                profile.contacts.formUnion(oneShot.allowed.map(\.key))
            }
            let installation = InstallationID(oneShot.installation ?? UUID().uuidString.lowercased())
            let token = AccessToken(oneShot.accessToken ?? UUID().uuidString.lowercased())
            let version = oneShot.version ?? 1
            let end = client.end
            let error = try await client.withClient(owner.required()) { [profile] in
                try await $0.register(
                    profile, as: installation, accessToken: token, version: version, with: server.key, vapidKey: server.vapidKey,
                    timeout: end.remaining)
            }
            try RegistrationResult.print(error, installation: installation, version: version, asJSON: client.json)
        }

        private func register(_ folder: ClientFolder) async throws {
            let profile = try preferences.profile()
            try preferences.requireApp()
            try await ClientSession.changeRegistrations(of: folder, client, runCommand: "client run") { [servers, again] client, timeout in
                let named = servers.isEmpty ? client.namedServers : servers.map(\.server)
                guard !named.isEmpty else { throw CommandFailure.noServer }
                return try await client.register(profile, with: named, enablesReceiving: true, again: again, timeout: timeout)
            }
        }
    }
}

extension RunningClient {
    /// Changes the registrations of the client of a folder, and prints the state at each server.
    ///
    /// - Parameters:
    ///   - runCommand: The command that retries servers that don't answer in time.
    ///   - mayBeRefused: Whether a refusal is no failure.
    ///   - prepare: Called before the client runs.
    static func changeRegistrations(
        of folder: ClientFolder, _ options: ClientOptions, runCommand: String, mayBeRefused: Bool = false,
        prepare: @Sendable (Client) -> Void = { _ in },
        by change: @Sendable @escaping (Client, _ timeout: Duration) async throws -> [PublicKey: RegistrationStatus]
    ) async throws {
        let (states, left, obstacle) = try await run(folder, options, prepare: prepare) { session in
            let end = options.end
            let states = try await change(session.client, options.timeout.duration)
            await session.client.waitUntilAdvertised(timeout: end.remaining)
            // Servers that the client leaves usually answer at once.
            if !states.values.contains(where: \.isPending) {
                await session.client.waitUntilSettled(timeout: min(end.remaining, .seconds(3)))
            }
            let left = session.client.registrations.filter { $0.value != .unregistered && states[$0.key] == nil }
            return (states, left, session.obstacle)
        }
        // A former server still has the registration until it answers, and until one of the new ones has accepted it.
        try ServerStateRow.print(states.merging(left) { state, _ in state }, asJSON: options.json)
        if !mayBeRefused {
            for (server, status) in states.sorted(by: { $0.key.hex < $1.key.hex }) {
                guard case .refused(let reason) = status else { continue }
                throw CommandFailure(.data, "server \(server.text) refused: \(reason.rawValue)")
            }
        }
        if let failure = CommandFailure(unanswered: states, obstacle, options.timeout, command: runCommand) { throw failure }
    }
}

extension CommandFailure {
    static var noServer: CommandFailure { CommandFailure(.usage, "--server is missing: give the public key of a push server") }

    /// The failure of a command that found no device.
    static func noDevice(_ flaw: AdvertisementFlaw?, _ obstacle: String?) -> CommandFailure {
        if let flaw { return CommandFailure(.data, "no device is known: the registrant's advertisement \(flaw.explanation)") }
        return CommandFailure(.unavailable, "no device is known: \(obstacle ?? "none is advertised, and no server that answered has one")")
    }

    /// Returns nil when every server answered.
    ///
    /// - Parameters:
    ///   - obstacle: Why no messages are sent or received; nil when a relay is attached.
    ///   - timeout: How long the command waited for answers.
    fileprivate init?(
        unanswered states: [PublicKey: RegistrationStatus], _ obstacle: String?, _ timeout: DurationArgument, command: String
    ) {
        let silent = states.filter(\.value.isPending).keys.map(\.text).sorted()
        guard let first = silent.first else { return nil }
        let servers = silent.count == 1 ? "server \(first)" : "\(silent.count) servers"
        // A server that answered INTERNAL_ERROR is tried again like one that did not answer.
        let hasFailed = states.values.contains { if case .pending(let tries) = $0 { tries > 0 } else { false } }
        let failure = hasFailed ? "did not confirm it within \(timeout) (INTERNAL_ERROR, or no answer)" : "did not answer within \(timeout)"
        let reason = obstacle.map { "did not get it: \($0)" } ?? failure
        self.init(.unavailable, "\(servers) \(reason); waku-push \(command) goes on trying")
    }
}

extension RegistrationStatus {
    fileprivate var isPending: Bool { if case .pending = self { true } else { false } }
}

/// The state at a server.
struct ServerStateRow: Encodable {
    let server: String
    let state: String
    let version: UInt64?
    let tries: Int
    /// Only in `client status`.
    var nextTryInSeconds: Int64?

    init(_ server: PublicKey, _ status: RegistrationStatus) {
        self.server = server.text
        (state, version, tries) =
            switch status {
            case .registered(let version): ("registered", version, 0)
            case .pending(let tries): ("pending", nil, tries)
            case .refused(let reason): (reason.rawValue, nil, 0)
            case .unregistered: ("unregistered", nil, 0)
            }
    }

    static func print(_ states: [PublicKey: RegistrationStatus], asJSON: Bool) throws {
        let rows = states.map(ServerStateRow.init).sorted { $0.server < $1.server }
        if asJSON { return try Output.json(rows) }
        guard !rows.isEmpty else { return }
        Output.table(["SERVER", "STATE", "VERSION"], rows.map { [$0.server, $0.state, $0.version.map(String.init) ?? "-"] })
    }
}

/// A server's answer to a registration without `--state`.
struct RegistrationResult: Encodable {
    let success: Bool
    let error: String?
    let installation: String
    let version: UInt64

    /// - Throws: ``CommandFailure`` when the server refused the registration.
    static func print(
        _ error: PushNotificationRegistrationResponse.ErrorType?, installation: InstallationID, version: UInt64, asJSON: Bool
    ) throws {
        if asJSON {
            try Output.json(
                RegistrationResult(success: error == nil, error: error?.name, installation: installation.string, version: version))
        } else if error == nil {
            Output.fields([("success", "yes"), ("installation", installation.string), ("version", String(version))])
        }
        // The same registration may succeed later if the server failed.
        if let error { throw CommandFailure(error == .internalError ? .unavailable : .data, "the server refused: \(error.name)") }
    }
}

extension PushNotificationRegistrationResponse.ErrorType {
    /// The name in the specification.
    var name: String {
        switch self {
        case .unknown: "UNKNOWN_ERROR_TYPE"
        case .malformedMessage: "MALFORMED_MESSAGE"
        case .versionMismatch: "VERSION_MISMATCH"
        case .unsupportedTokenType: "UNSUPPORTED_TOKEN_TYPE"
        case .internalError: "INTERNAL_ERROR"
        }
    }
}

extension PushNotificationReport.ErrorType {
    /// Whether the same request may succeed later: the server failed, or its push gateway.
    var passes: Bool { self == .internalError }

    /// The name in the specification.
    var name: String {
        switch self {
        case .unknown: "UNKNOWN_ERROR_TYPE"
        case .wrongToken: "WRONG_TOKEN"
        case .internalError: "INTERNAL_ERROR"
        case .notRegistered: "NOT_REGISTERED"
        }
    }
}
