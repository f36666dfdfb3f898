import StatusProtocol

/// The body of gorush's `POST /api/push`: a JSON object with one array, `notifications`.
///
/// Each has its own `notif_id`, since gorush masks the tokens in what it reports. In the `rfc` profile, devices with the same platform,
/// topic, chat and message share one, which is the id of the first of them. Bytes are `0x` and lower-case hex.
///
/// Notifications for APNs are alerts in all profiles, and have their `notif_id` as `collapse_id` too: a device shows one that is delivered again
/// in place of the first. Those for Firebase have nothing of the kind.
struct PushRequest {
    /// Of a `collapse_id`, in bytes: APNs refuses a longer one, and the notification with it.
    private static let maximumCollapseIDByteCount = 64

    /// The devices of each entry, at least one.
    let members: [[Notification]]
    private let profile: PayloadProfile

    init(_ notifications: [Notification], profile: PayloadProfile) {
        self.profile = profile
        members = profile == .rfc ? Self.grouped(notifications) : notifications.map { [$0] }
    }

    /// UTF-8.
    func encoded() -> [UInt8] {
        let byteCount = members.reduce(0) { sum, group in
            sum + 1000 + group.reduce(0) { $0 + $1.deviceToken.bytes.count } + 4 * ((group.first?.message.count ?? 0) + 64)
        }
        var writer = JSONWriter(capacity: byteCount)
        writer.object { writer in
            writer.array("notifications") { writer in
                for group in members { write(group, to: &writer) }
            }
        }
        return writer.bytes
    }

    private func write(_ devices: [Notification], to writer: inout JSONWriter) {
        guard let first = devices.first else { return }
        let hasAdditions = first.platform == .apn && (profile == .status || profile == .combined)
        writer.object { writer in
            writer.value("notif_id", first.id)
            writer.array("tokens") { writer in
                for device in devices { writer.element(device.deviceToken.revealed) }
            }
            writer.value("platform", first.platform.rawValue)
            writer.value("message", profile.text(for: first.kind))
            if first.platform == .apn {
                writer.value("topic", first.apnTopic)
                if (1...Self.maximumCollapseIDByteCount).contains(first.id.utf8.count) { writer.value("collapse_id", first.id) }
            }
            if first.isForSandbox { writer.value("development", true) }
            if hasAdditions {
                writer.value("content_available", true)
                writer.value("sound", "default")
                writer.value("priority", "high")
                writer.value("push_type", "alert")
            }
            writer.object("data") { writer in
                if profile != .rfc {
                    writer.value("encryptedMessage", hex: first.message)
                    writer.value("chatId", hex: first.chatID)
                    writer.value("publicKey", hex: first.registrant.bytes)
                }
                if hasAdditions, let deepLink = profile.deepLink(for: first.kind) { writer.value("deepLink", deepLink) }
                if profile == .rfc || profile == .combined {
                    writer.value("chat_id", hex: first.chatID)
                    writer.value("message", hex: first.message)
                    writer.array("installation_ids") { writer in
                        for device in devices { writer.element(device.installationID.string) }
                    }
                }
            }
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

extension PayloadProfile {
    /// The JSON that gorush gets for at most 100 notifications.
    public func encode(_ notifications: [Notification]) -> [UInt8] {
        PushRequest(notifications, profile: self).encoded()
    }
}
