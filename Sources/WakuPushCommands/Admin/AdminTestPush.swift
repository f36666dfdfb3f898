import ArgumentParser
import Delivery
import Gorush
import PushTypes
import StatusServer
import Storage
import StoreSQLite
import StatusProtocol
import WakuCrypto

extension Admin {
    struct TestPush: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Posts one notification to gorush, and shows what it says of it.",
            discussion: """
                To a registered device, or to a token from a file or standard input. It goes to gorush alone: neither the outbox nor the \
                registration is touched. Takes serve's options for gorush. A gorush with sync: false only says that it queued it: then its \
                log has the verdict.

                EXAMPLES
                  waku-push admin test-push 0eb7c16f --data data --identity id.key
                  waku-push admin test-push --token-file - --platform apn \\
                    --apn-topic im.status.ethereum

                EXIT CODES
                  0   gorush took it, and told of no failure
                  2   it did not, or told of one
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "A key hash, a public key, or the beginning of a hash.") var registrant: RegistrantArgument?
        @Option(help: "Only this installation.") var installation: String?
        @Option(help: "A file with a device token, or - for standard input, instead of a registrant.") var tokenFile: String?
        @Option(help: "apn or firebase: of the token in --token-file.") var platform: PlatformArgument?
        @Option(help: "The app on APNs: of the token in --token-file.") var apnTopic: String?
        @OptionGroup(title: "Gorush") var gorush: GorushOptions

        func run() async throws {
            try await reportingFailures {
                let target = try target()
                let settings = try gorush.settings()
                guard let place = EndpointRouting(settings.map(\.rule)).endpoint(for: target.platform, apnTopic: target.apnTopic) else {
                    throw CommandFailure(.data, "no gorush is configured for this app")
                }
                let result = await (try settings[place].client()).post([target])
                let verdict = Verdict(result)
                if admin.json { try Output.json(verdict) } else { Output.fields(verdict.fields) }
                if !verdict.isGood { throw ExitCode(2) }
            }
        }

        private func target() throws -> Notification {
            guard (registrant == nil) != (tokenFile == nil) else { throw CommandFailure(.usage, "give a registrant, or --token-file") }
            guard let registrant else { return try targetOfToken(tokenFile ?? "-") }
            guard platform == nil, apnTopic == nil else {
                throw CommandFailure(.usage, "--platform and --apn-topic go with --token-file: a registration says both")
            }
            let store = try admin.openStore(of: command, unsealing: true)
            let keyHash = try registrant.resolve(in: store)
            let found = try store.read(StatusServer.Registrations(store.sealer).registrations(of: [keyHash])).filter {
                installation == nil || $0.key.installationID == InstallationID(installation ?? "")
            }
            guard let stored = found.first else { throw CommandFailure(.data, "nothing is registered there") }
            guard found.count == 1 else {
                throw CommandFailure(.usage, "\(found.count) devices are registered there: choose one by --installation")
            }
            return Self.notification(
                to: stored.registration.deviceToken, on: stored.registration.platform ?? .apn, apnTopic: stored.registration.apnTopic,
                of: stored.key)
        }

        private func targetOfToken(_ path: String) throws -> Notification {
            guard let platform else { throw CommandFailure(.usage, "--platform is missing: apn or firebase") }
            guard platform != .apn || apnTopic != nil else { throw CommandFailure(.usage, "--apn-topic is missing: the app on APNs") }
            guard installation == nil else { throw CommandFailure(.usage, "--installation goes with a registrant") }
            let nobody = RegistrationKey(keyHash: KeyHash(of: PrivateKey.generate().publicKey), installationID: InstallationID("test"))
            return Self.notification(to: try TokenInput.read(path), on: platform.platform, apnTopic: apnTopic ?? "", of: nobody)
        }

        /// What a message in a chat looks like, from a chat that nobody knows, with nothing to open.
        private static func notification(
            to token: DeviceToken, on platform: Platform, apnTopic: String, of key: RegistrationKey
        ) -> Notification {
            Notification(
                id: "test-" + hexString(randomBytes(12)), platform: platform, deviceToken: token, apnTopic: apnTopic,
                content: StatusContent(
                    kind: .message, chatID: Shake256.hash64(randomBytes(32)), registrant: key.keyHash, message: [],
                    installationID: key.installationID))
        }
    }
}

/// What gorush said of one notification.
private struct Verdict: Encodable {
    /// accepted, refused or failed.
    let outcome: String
    let reason: String?
    /// Of one token; nil when gorush did not say.
    let counted: Int?
    /// What gorush, or Apple or Google through it, said of the token.
    let tokenFailure: String?
    /// What the node would make of that.
    let tokenVerdict: String?

    init(_ result: PostResult) {
        outcome =
            switch result.outcome {
            case .accepted: "accepted"
            case .refused: "refused"
            case .failed, .notPosted: "failed"
            }
        reason = result.reason
        counted = result.countedTokenCount
        tokenFailure = result.failures.first.map { $0.reason.rawValue }
        tokenVerdict = result.failures.first.map { $0.verdict.rawValue }
    }

    var isGood: Bool { outcome == "accepted" && tokenFailure == nil && counted != 0 }

    var fields: [(String, String)] {
        var fields = [("gorush", outcome)]
        if let reason { fields.append(("reason", Output.printable(reason))) }
        if counted == 0 { fields.append(("counted", "none: is the platform switched off in gorush?")) }
        if let tokenFailure { fields.append(("token", tokenFailure + (tokenVerdict.map { ", held to be \($0)" } ?? ""))) }
        if isGood { fields.append(("token", "no failure told")) }
        return fields
    }
}
