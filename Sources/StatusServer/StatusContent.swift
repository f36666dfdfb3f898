package import Gorush
package import PushTypes
package import StatusProtocol

/// The content of a Status notification.
package struct StatusContent: NotificationContent {
    package let kind: NotificationKind
    package let chatID: [UInt8]
    package let registrant: KeyHash
    /// Encrypted by the sender for the device.
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

    /// Chat and message, in the published format.
    package func groupKey(in profile: PayloadProfile) -> [UInt8]? {
        guard profile == .rfc else { return nil }
        return withUnsafeBytes(of: UInt64(chatID.count).bigEndian, Array.init) + chatID + message
    }

    private func hasAdditions(_ platform: Platform, _ profile: PayloadProfile) -> Bool {
        platform == .apn && (profile == .status || profile == .combined)
    }

    package func writeMembers(for platform: Platform, in profile: PayloadProfile, to writer: inout JSONWriter) {
        guard hasAdditions(platform, profile) else { return }
        writer.value("content_available", true)
        writer.value("sound", "default")
        writer.value("priority", "high")
        writer.value("push_type", "alert")
    }

    package func writeData(for devices: [Gorush.Notification], in profile: PayloadProfile, to writer: inout JSONWriter) {
        if profile != .rfc {
            writer.value("encryptedMessage", hex: message)
            writer.value("chatId", hex: chatID)
            writer.value("publicKey", hex: registrant.bytes)
        }
        if let platform = devices.first?.platform, hasAdditions(platform, profile), let deepLink = profile.deepLink(for: kind) {
            writer.value("deepLink", deepLink)
        }
        if profile == .rfc || profile == .combined {
            writer.value("chat_id", hex: chatID)
            writer.value("message", hex: message)
            writer.array("installation_ids") { writer in
                for case let content as StatusContent in devices.lazy.map(\.content) { writer.element(content.installationID.string) }
            }
        }
    }
}

extension PayloadProfile {
    /// The text that the device shows unless the app replaces it.
    package func text(for kind: NotificationKind) -> String {
        switch (self, kind) {
        case (.rfc, _), (.status2024, .message): "You have a new message"
        case (_, .requestToJoinCommunity): "Someone requested to join a community you are an admin of"
        case (.status2024, _): "Someone mentioned you"
        case (_, .message): "New message in Messenger"
        case (_, .contactRequest): "Someone sent you a contact request"
        default: "New mention or reply in Communities"
        }
    }

    /// The link that the app opens, on APNs; nil if the profile has none.
    func deepLink(for kind: NotificationKind) -> String? {
        switch (self, kind) {
        case (.status2024, _), (.rfc, _): nil
        case (_, .message): "status-app://chats"
        case (_, .contactRequest): "status-app://contact-requests"
        default: "status-app://ac"
        }
    }
}
