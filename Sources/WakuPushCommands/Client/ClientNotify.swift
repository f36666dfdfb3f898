import ArgumentParser
import Foundation
import PushClient
import PushTypes
import StatusProtocol
import WakuCrypto

extension Client {
    struct Query: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Asks which devices somebody has. A server that knows none keeps silent.")

        @OptionGroup var client: ClientOptions
        @OptionGroup var asker: ClientIdentityOptions
        @Option(help: "The public key asked about.") var registrant: PublicKeyArgument
        @Flag(help: "Show access tokens.") var reveal = false

        func run() async throws {
            try await reportingFailures {
                let devices = try await client.withClient(asker.orEphemeral()) { [client, registrant] in
                    try await $0.query(registrant.key, at: client.server.key, timeout: client.timeout.duration)
                }
                let rows = devices.map { Row($0, reveal: reveal) }
                if client.json { return try Output.json(rows) }
                let header = ["INSTALLATION", "VERSION", "MAY BE NOTIFIED"] + (reveal ? ["ACCESS TOKEN"] : [])
                Output.table(
                    header,
                    rows.map { row in
                        [Output.printable(row.installation), String(row.version), row.mayBeNotified ? "yes" : "by others only"]
                            + (reveal ? [row.accessToken.map(Output.printable) ?? ""] : [])
                    })
            }
        }

        private struct Row: Encodable {
            let installation: String
            let version: UInt64
            let mayBeNotified: Bool
            let accessToken: String?

            init(_ device: ReachableDevice, reveal: Bool) {
                installation = device.installationID.string
                version = device.version
                mayBeNotified = device.accessToken != nil
                accessToken = reveal ? device.accessToken?.revealed : nil
            }
        }
    }

    struct Notify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Has somebody's devices notified.",
            discussion: "Asks for the access tokens first. The same --message-id notifies a device once, however often it is sent.")

        @OptionGroup var client: ClientOptions
        @OptionGroup var asker: ClientIdentityOptions
        @Option(help: "The public key of whom to notify.") var registrant: PublicKeyArgument
        @Option(help: "message, mention, join-community or contact-request.") var kind: Kind = .message
        @Option(help: "The chat's id: devices get its hash.") var chat = "waku-push"
        @Option(help: "The encrypted message, in hex.") var message = ""
        @Option(help: "What the notification is about, in hex. [default: 32 random bytes]") var messageId: String?

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

        func run() async throws {
            try await reportingFailures {
                guard let content = bytes(hex: message) else { throw CommandFailure(.usage, "--message is not hexadecimal") }
                guard let messageID = messageId.map({ bytes(hex: $0) }) ?? randomBytes(32), !messageID.isEmpty else {
                    throw CommandFailure(.usage, "--message-id is not hexadecimal")
                }
                let identity = try asker.orEphemeral()
                let author = Shake256.hash64(Array(("0x" + identity.publicKey.hex).utf8))
                let chatID = Shake256.hash64(Array(chat.utf8))
                let reports = try await client.withClient(identity) { [client, registrant, kind] pushClient in
                    let devices = try await pushClient.query(registrant.key, at: client.server.key, timeout: client.timeout.duration)
                    let notifications = devices.compactMap { device in
                        device.accessToken.map {
                            PushNotification(
                                accessToken: $0, chatID: chatID, publicKey: KeyHash(of: registrant.key).bytes,
                                installationID: device.installationID, message: content, kind: kind.notificationKind, author: author)
                        }
                    }
                    guard !notifications.isEmpty else {
                        throw CommandFailure(.data, "none of the devices may be notified by this key: their owner did not allow it")
                    }
                    return try await pushClient.notify(
                        notifications, messageID: messageID, at: client.server.key, timeout: client.timeout.duration)
                }
                let rows = reports.map(Row.init)
                if client.json {
                    try Output.json(rows)
                } else {
                    Output.table(["INSTALLATION", "RESULT"], rows.map { [Output.printable($0.installation), $0.error ?? "success"] })
                }
                if let error = rows.lazy.compactMap(\.error).first {
                    throw CommandFailure(.data, "not all devices were notified: \(error)")
                }
            }
        }

        private struct Row: Encodable {
            let installation: String
            let success: Bool
            let error: String?

            init(_ report: PushNotificationReport) {
                installation = report.installationID.string
                success = report.error == nil
                error = report.error?.name
            }
        }
    }
}
