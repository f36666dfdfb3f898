import PushNode
import ArgumentParser
import Core
import Delivery
import StatusServer
import Storage
import StatusProtocol
import WakuCrypto

extension Admin {
    struct TestPush: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Posts a test notification to gorush and shows the result, or prints what would be posted.",
            discussion: """
                The target is a registered device, or a device token from a file or standard input. The outbox and the registration are not \
                changed. If a daemon runs on the data folder, it posts the notification itself, with its own servers, credentials and settings of \
                notifications, unless options, the environment or the configuration file name a gorush. Otherwise the gorush options of serve and \
                the settings of notifications in the configuration file apply. A gorush with sync: false only reports that it queued the notification; the \
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
        @Argument(help: "A key hash, a public key, or a prefix of a key hash.", transform: RegistrantArgument.parse) var registrant:
            RegistrantArgument?
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

        func execute() async throws {
            guard preview || !reveal else { throw CommandFailure(.usage, "--reveal needs --preview") }
            // A token that the operator gives is not read from the store.
            let push =
                if registrant == nil { try await target() } else { try await audited(.testPush) { try await target() } }
            let byDaemon = try await postedByDaemon(push)
            let tested = if let byDaemon { byDaemon } else { try await posted(push) }
            if let problem = tested.problem { throw CommandFailure(.data, problem) }
            if let preview = tested.preview { return Output.line(preview) }
            try tested.print(asJSON: admin.json)
            if !tested.isGood { throw ExitCode(2) }
        }

        /// By the daemon that runs on the data folder: nil if there is none, or if options or the configuration file name another server, or other
        /// settings for a preview.
        private func postedByDaemon(_ push: AdminAPI.TestPush) async throws -> AdminAPI.TestedPush? {
            guard !gorush.namesServer, !(preview && Environment.file != nil),
                let client = try? client(),
                try await client.status() != nil
            else { return nil }
            return try await client.post("/gorush/test-push", push, timeout: .seconds(610))
        }

        private func posted(_ push: AdminAPI.TestPush) async throws -> AdminAPI.TestedPush {
            let settings = try gorush.settings()
            return try await push.carryOut(
                rules: settings.map(\.rule), format: { settings[$0].format }, post: { try await settings[$0].client().post([$1]) })
        }

        private func target() async throws -> AdminAPI.TestPush {
            guard (registrant == nil) != (tokenFile == nil) else { throw CommandFailure(.usage, "give a registrant, or --token-file") }
            guard let registrant else { return try targetOfToken(tokenFile ?? "-") }
            guard platform == nil, apnTopic == nil else {
                throw CommandFailure(.usage, "--platform and --apn-topic need --token-file: a registration has both")
            }
            let store = try await openStore(unsealing: true)
            let keyHash = try registrant.resolve(in: store)
            let found = try store.read(StatusServer.Registrations(store.sealer).registrations(of: [keyHash])).filter {
                installation == nil || $0.key.installationID == InstallationID(installation ?? "")
            }
            guard let stored = found.first else { throw CommandFailure(.data, "no registration of this registrant") }
            guard found.count == 1 else {
                throw CommandFailure(.usage, "\(found.count) devices are registered: choose one with --installation")
            }
            guard let platform = stored.registration.platform else {
                throw CommandFailure(.data, "the device has token type \(stored.registration.tokenType), which this release does not know")
            }
            guard platform != .webPush else {
                throw CommandFailure(
                    .usage, "the device has a Web Push subscription, which gorush does not serve: waku-push doctor --test-push posts to one"
                )
            }
            return notification(
                to: stored.registration.deviceToken, on: platform, apnTopic: stored.registration.apnTopic,
                of: stored.key)
        }

        private func targetOfToken(_ path: String) throws -> AdminAPI.TestPush {
            guard let platform else { throw CommandFailure(.usage, "--platform is missing: apn, firebase or huawei") }
            guard platform != .apn || apnTopic != nil else { throw CommandFailure(.usage, "--apn-topic is missing: the app on APNs") }
            guard installation == nil else { throw CommandFailure(.usage, "--installation needs a registrant") }
            let unknown = RegistrationKey(keyHash: KeyHash(of: PrivateKey.generate().publicKey), installationID: InstallationID("test"))
            return notification(to: try SecretInput.token(path), on: platform.platform, apnTopic: apnTopic ?? "", of: unknown)
        }

        private func notification(
            to token: DeviceToken, on platform: Platform, apnTopic: String, of key: RegistrationKey
        ) -> AdminAPI.TestPush {
            AdminAPI.TestPush(
                platform: platform, deviceToken: preview && !reveal ? "<redacted>" : token.revealed, apnTopic: apnTopic,
                keyHash: hexString(key.keyHash.bytes), installation: key.installationID.string, kind: kind.rawValue,
                lifetime: Int((Environment.value("max-request-age") ?? Settings.maxRequestAge.standard).duration / .seconds(1)),
                isPreview: preview)
        }
    }
}
