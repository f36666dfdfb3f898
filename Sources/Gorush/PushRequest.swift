import Foundation
import StatusProtocol
import WakuCrypto

/// The body of gorush's `POST /api/push`: a JSON object with one array, `notifications`.
///
/// Each has its own `notif_id`, since gorush masks the tokens in what it reports. In the `rfc` profile, devices with the same platform,
/// topic, chat and message share one, which is the id of the first of them.
struct PushRequest: Encodable {
    /// The most notifications that gorush takes at once by default (`core.max_notification`).
    static let maximumCount = 100

    let notifications: [Entry]
    /// The devices of each entry.
    let members: [[Notification]]

    /// One entry of the array. What is nil is left out.
    struct Entry: Encodable {
        let id: String
        var tokens: [String]
        let platform: Platform
        let message: String
        var topic: String?
        var contentAvailable: Bool?
        var sound: String?
        var priority: String?
        var pushType: String?
        var data: Content

        enum CodingKeys: String, CodingKey {
            case tokens, platform, message, topic, sound, priority, data
            case id = "notif_id"
            case contentAvailable = "content_available"
            case pushType = "push_type"
        }
    }

    /// What the app finds. Bytes are `0x` and lower-case hex.
    struct Content: Encodable {
        var encryptedMessage: String?
        var chatID: String?
        var publicKey: String?
        var deepLink: String?
        var publishedChatID: String?
        var publishedMessage: String?
        var installationIDs: [String]?

        enum CodingKeys: String, CodingKey {
            case encryptedMessage, publicKey, deepLink
            case chatID = "chatId"
            case publishedChatID = "chat_id"
            case publishedMessage = "message"
            case installationIDs = "installation_ids"
        }
    }

    enum CodingKeys: CodingKey {
        case notifications
    }

    init(_ notifications: [Notification], profile: PayloadProfile) {
        members = profile == .rfc ? Self.grouped(notifications) : notifications.map { [$0] }
        self.notifications = members.compactMap { Entry(sharedBy: $0, profile: profile) }
    }

    /// UTF-8.
    func encoded() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        do {
            return try Array(encoder.encode(self))
        } catch {
            preconditionFailure("strings, booleans and numbers from 1 to 2 always encode")
        }
    }

    /// In the order of their first members.
    private static func grouped(_ notifications: [Notification]) -> [[Notification]] {
        struct Sameness: Hashable {
            let platform: Platform
            let topic: String?
            let chatID: [UInt8]
            let message: [UInt8]
        }
        var places: [Sameness: Int] = [:]
        var groups: [[Notification]] = []
        for notification in notifications {
            let sameness = Sameness(
                platform: notification.platform, topic: notification.platform == .apn ? notification.apnTopic : nil,
                chatID: notification.chatID, message: notification.message)
            if let place = places[sameness] {
                groups[place].append(notification)
            } else {
                places[sameness] = groups.count
                groups.append([notification])
            }
        }
        return groups
    }
}

extension PushRequest.Entry {
    /// nil for nobody.
    fileprivate init?(sharedBy devices: [Notification], profile: PayloadProfile) {
        guard let first = devices.first else { return nil }
        id = first.id
        tokens = devices.map(\.deviceToken.revealed)
        platform = first.platform
        message = profile.text(for: first.kind)
        data = PushRequest.Content()
        let chatID = "0x" + hexString(first.chatID)
        let message = "0x" + hexString(first.message)
        if profile != .rfc {
            data.encryptedMessage = message
            data.chatID = chatID
            data.publicKey = "0x" + first.registrant.hex
        }
        if profile == .rfc || profile == .combined {
            data.publishedChatID = chatID
            data.publishedMessage = message
            data.installationIDs = devices.map(\.installationID.string)
        }
        guard first.platform == .apn else { return }
        topic = first.apnTopic
        if profile == .status || profile == .combined {
            contentAvailable = true
            sound = "default"
            priority = "high"
            pushType = "alert"
            data.deepLink = profile.deepLink(for: first.kind)
        }
    }
}

extension PayloadProfile {
    /// The JSON that gorush gets for at most 100 notifications.
    public func encode(_ notifications: [Notification]) -> [UInt8] {
        PushRequest(notifications, profile: self).encoded()
    }
}
