package import Delivery
package import Core
package import StatusProtocol
import WakuCrypto

/// The content of a Status notification.
package struct StatusContent: NotificationContent {
    package let kind: NotificationKind
    package let chatID: [UInt8]
    package let registrant: KeyHash
    /// The message, encrypted by the sender for the device.
    package let message: [UInt8]
    package let installationID: InstallationID

    package init(kind: NotificationKind, chatID: [UInt8], registrant: KeyHash, message: [UInt8], installationID: InstallationID) {
        self.kind = kind
        self.chatID = chatID
        self.registrant = registrant
        self.message = message
        self.installationID = installationID
    }

    package init(_ notification: PushNotification, for key: RegistrationKey) {
        self.init(
            kind: notification.kind, chatID: notification.chatID, registrant: key.keyHash, message: notification.message,
            installationID: key.installationID)
    }

    package var byteCount: Int { 4 * (message.count + 64) }

    package func text(in profile: PayloadProfile) -> String { profile.text(for: kind) }

    /// Chat and message in the published format; nil in other profiles.
    package func groupKey(in profile: PayloadProfile) -> [UInt8]? {
        guard profile == .rfc else { return nil }
        return withUnsafeBytes(of: UInt64(chatID.count).bigEndian, Array.init) + chatID + message
    }

    package var subject: NotificationSubject {
        NotificationSubject(protocolName: StatusPush.protocolName, kind: ContentKind(kind), chat: chatID)
    }

    package func style(for platform: Platform, in profile: PayloadProfile) -> NotificationStyle {
        var style = NotificationStyle(body: text(in: profile))
        guard platform == .apn, profile == .status || profile == .combined else { return style }
        style.isContentAvailable = true
        style.sound = "default"
        style.priority = .high
        style.pushType = "alert"
        style.deepLink = profile.deepLink(for: kind)
        return style
    }

    package func webPushContent(id: String) -> WebPushContent? {
        func json(isTruncated: Bool, includesChat: Bool = true) -> [UInt8] {
            var writer = JSONWriter(capacity: 512 + 2 * message.count)
            writer.object { writer in
                writer.value("v", 1)
                writer.value("protocol", "status")
                writer.value("id", id)
                writer.value("type", subject.kind.rawValue)
                if !isTruncated { writer.value("encryptedMessage", hex: message) }
                if includesChat { writer.value("chatId", hex: chatID) }
                writer.value("publicKey", hex: registrant.bytes)
                writer.array("installationIds") { $0.element(installationID.string) }
                if isTruncated { writer.value("truncated", true) }
            }
            return writer.bytes
        }
        var truncated = json(isTruncated: true)
        // The hash of a chat has 64 bytes, but senders may name any bytes. The rest always fits.
        if truncated.count > WebPushEncryption.maximumContentByteCount { truncated = json(isTruncated: true, includesChat: false) }
        let isUrgent = [.message, .mention, .contactRequest].contains(subject.kind)
        return WebPushContent(whole: json(isTruncated: false), truncated: truncated, urgency: isUrgent ? .high : .normal)
    }

    package func writeData(for body: NotificationBody, to writer: inout JSONWriter) {
        let profile = body.profile
        if profile != .rfc {
            writer.value("encryptedMessage", hex: message)
            writer.value("chatId", hex: chatID)
            writer.value("publicKey", hex: registrant.bytes)
        }
        if let deepLink = body.deepLink { writer.value("deepLink", deepLink) }
        if profile == .rfc || profile == .combined {
            writer.value("chat_id", hex: chatID)
            writer.value("message", hex: message)
            writer.array("installation_ids") { writer in
                for case let content as StatusContent in body.devices.lazy.map(\.content) { writer.element(content.installationID.string) }
            }
        }
    }
}

extension ContentKind {
    init(_ kind: NotificationKind) {
        switch kind {
        case .message: self = .message
        case .mention: self = .mention
        case .requestToJoinCommunity: self = .requestToJoinCommunity
        case .contactRequest: self = .contactRequest
        default: self = .other
        }
    }
}

extension NotificationKind {
    /// The kind with this name in settings; the lowest unassigned value for `other`.
    package init(_ kind: ContentKind) {
        self =
            switch kind {
            case .message: .message
            case .mention: .mention
            case .requestToJoinCommunity: .requestToJoinCommunity
            case .contactRequest: .contactRequest
            case .other: NotificationKind(rawValue: NotificationKind.contactRequest.rawValue + 1)
            }
    }
}

extension PayloadProfile {
    /// The text that the device shows unless the app replaces it.
    package func text(for kind: NotificationKind) -> String {
        switch (self, kind) {
        case (.private, _): Self.privateText
        case (.rfc, _), (.status2024, .message): "You have a new message"
        case (_, .requestToJoinCommunity): "Someone requested to join a community you are an admin of"
        case (.status2024, _): "Someone mentioned you"
        case (_, .message): "New message in Messenger"
        case (_, .contactRequest): "Someone sent you a contact request"
        default: "New mention or reply in Communities"
        }
    }

    /// The link that the app opens, on APNs; nil if the profile has none.
    func deepLink(for kind: NotificationKind) -> DeepLinkTemplate? {
        switch (self, kind) {
        case (.status2024, _), (.rfc, _), (.private, _): nil
        case (_, .message): Self.chatsLink
        case (_, .contactRequest): Self.contactRequestsLink
        default: Self.activityLink
        }
    }

    private static let chatsLink = DeepLinkTemplate("status-app://chats")
    private static let contactRequestsLink = DeepLinkTemplate("status-app://contact-requests")
    private static let activityLink = DeepLinkTemplate("status-app://ac")
}
