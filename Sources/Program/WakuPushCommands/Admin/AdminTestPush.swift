import ArgumentParser
import Delivery
import Core
import StatusServer
import Storage
import StoreSQLite
import StatusProtocol
import Waku
import WakuCrypto

extension Admin {
    struct TestPush: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Posts a test notification to gorush and shows the result, or prints what would be posted.",
            discussion: """
                The target is a registered device, or a device token from a file or standard input. The outbox and the registration are not \
                changed. Takes the gorush options of serve, and the settings of notifications in the configuration file. A gorush with sync: false only reports that it queued the notification; the \
                outcome is then in its log. --preview prints the JSON that gorush would get, as the node would write it, and posts nothing.

                EXAMPLES
                  waku-push admin test-push 0eb7c16f --data data --identity id.key
                  waku-push admin test-push --token-file - --platform apn \\
                    --apn-topic im.status.ethereum
                  waku-push admin test-push 0eb7c16f --data data --identity id.key \\
                    --config waku-push.yaml --kind mention --preview

                EXIT CODES
                  0   gorush accepted it and reported no failure, or --preview
                  2   gorush did not accept it, or reported a failure
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "A key hash, a public key, or a prefix of a key hash.") var registrant: RegistrantArgument?
        @Option(help: "Only this installation.") var installation: String?
        @Option(help: "A file with a device token, or - for standard input, instead of a registrant.") var tokenFile: String?
        @Option(help: "Platform of the token in --token-file: apn, firebase or huawei.") var platform: Target?
        @Option(help: "APNs topic (app) of the token in --token-file.") var apnTopic: String?
        @Option(help: "Kind of the notification: \(ContentKind.allCases.map(\.rawValue).joined(separator: ", ")).")
        var kind: ContentKind = .message
        @Flag(help: "Print the JSON without posting it. The device token is redacted unless --reveal is given.") var preview = false
        @Flag(help: "Print the device token in --preview.") var reveal = false
        @OptionGroup(title: "Gorush") var gorush: GorushOptions

        /// A platform of a token on the command line. No registration of Status has a Huawei token, but an operator may test gorush with one.
        enum Target: String, ExpressibleByArgument, CaseIterable {
            case apn
            case firebase
            case huawei

            var platform: Platform {
                switch self {
                case .apn: .apn
                case .firebase: .firebase
                case .huawei: .huawei
                }
            }
        }

        func run() async throws {
            try await reportingFailures {
                guard preview || !reveal else { throw CommandFailure(.usage, "--reveal needs --preview") }
                let target = try target()
                let settings = try gorush.settings()
                guard let place = EndpointRouting(settings.map(\.rule)).endpoint(for: target.platform, apnTopic: target.apnTopic) else {
                    throw CommandFailure(.data, "no gorush is configured for this app")
                }
                let isForSandbox =
                    target.platform == .apn && settings[place].rule.sandboxTopics.contains(target.apnTopic)
                let notification = target.with(isForSandbox: isForSandbox)
                if preview {
                    let format = NotificationFormat(settings[place].profile, settings: settings[place].notifications)
                    let shown = reveal ? notification : notification.with(DeviceToken("<redacted>"), isForSandbox: isForSandbox)
                    return Output.text(String(decoding: format.encode([shown], at: .now()), as: UTF8.self))
                }
                let result = await (try settings[place].client()).post([notification])
                let verdict = Verdict(result)
                if admin.json { try Output.json(verdict) } else { Output.fields(verdict.fields) }
                if !verdict.isGood { throw ExitCode(2) }
            }
        }

        private func target() throws -> Notification {
            guard (registrant == nil) != (tokenFile == nil) else { throw CommandFailure(.usage, "give a registrant, or --token-file") }
            guard let registrant else { return try targetOfToken(tokenFile ?? "-") }
            guard platform == nil, apnTopic == nil else {
                throw CommandFailure(.usage, "--platform and --apn-topic need --token-file: a registration has both")
            }
            let store = try admin.openStore(of: command, unsealing: true)
            let keyHash = try registrant.resolve(in: store)
            let found = try store.read(StatusServer.Registrations(store.sealer).registrations(of: [keyHash])).filter {
                installation == nil || $0.key.installationID == InstallationID(installation ?? "")
            }
            guard let stored = found.first else { throw CommandFailure(.data, "no registration of this registrant") }
            guard found.count == 1 else {
                throw CommandFailure(.usage, "\(found.count) devices are registered: choose one with --installation")
            }
            return notification(
                to: stored.registration.deviceToken, on: stored.registration.platform ?? .apn, apnTopic: stored.registration.apnTopic,
                of: stored.key)
        }

        private func targetOfToken(_ path: String) throws -> Notification {
            guard let platform else { throw CommandFailure(.usage, "--platform is missing: apn, firebase or huawei") }
            guard platform != .apn || apnTopic != nil else { throw CommandFailure(.usage, "--apn-topic is missing: the app on APNs") }
            guard installation == nil else { throw CommandFailure(.usage, "--installation needs a registrant") }
            let unknown = RegistrationKey(keyHash: KeyHash(of: PrivateKey.generate().publicKey), installationID: InstallationID("test"))
            return notification(to: try SecretInput.token(path), on: platform.platform, apnTopic: apnTopic ?? "", of: unknown)
        }

        /// Like the node's own notifications, for a random chat and without content. It expires like a request made now.
        private func notification(
            to token: DeviceToken, on platform: Platform, apnTopic: String, of key: RegistrationKey
        ) -> Notification {
            Notification(
                id: "test-" + hexString(randomBytes(12)), platform: platform, deviceToken: token, apnTopic: apnTopic,
                expires: .now() + Environment.value("max-request-age", Serve.standardRequestAge).duration,
                content: StatusContent(
                    kind: NotificationKind(kind), chatID: Shake256.hash64(randomBytes(32)), registrant: key.keyHash, message: [],
                    installationID: key.installationID))
        }
    }
}

extension Notification {
    fileprivate func with(_ token: DeviceToken? = nil, isForSandbox: Bool) -> Notification {
        Notification(
            id: id, platform: platform, deviceToken: token ?? deviceToken, apnTopic: apnTopic, isForSandbox: isForSandbox,
            expires: expires, content: content)
    }
}

/// The outcome of a single notification.
private struct Verdict: Encodable {
    /// accepted, refused or failed.
    let outcome: String
    let reason: String?
    /// The number of tokens that gorush counted, out of one; nil when its reply has no count.
    let counted: Int?
    /// The token failure in gorush's reply, its own or that of Apple or Google.
    let tokenFailure: String?
    /// How the node would judge that failure.
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
        if let reason { fields.append(("reason", reason)) }
        if counted == 0 { fields.append(("counted", "none: is the platform switched off in gorush?")) }
        if let tokenFailure { fields.append(("token", tokenFailure + (tokenVerdict.map { ", verdict \($0)" } ?? ""))) }
        if isGood { fields.append(("token", "no failure reported")) }
        return fields
    }
}
