import PushTypes

/// The body of gorush's `POST /api/push`: a JSON object with one array, `notifications`.
///
/// Each has its own `notif_id`, since gorush masks tokens in its reports. Devices with the same platform, topic and
/// ``NotificationContent/groupKey(in:)`` share one, the id of the first of them. Bytes are written as `0x` and lower-case digits.
///
/// Notifications for APNs are alerts in all profiles, and have their `notif_id` also as `collapse_id`, so that a device replaces one that is
/// delivered twice. There is no equivalent for Firebase.
struct PushRequest {
    /// The devices of each entry, at least one.
    let members: [[Notification]]
    private let profile: PayloadProfile

    init(_ notifications: [Notification], profile: PayloadProfile) {
        self.profile = profile
        members = Self.grouped(notifications, profile)
    }

    /// UTF-8.
    func encoded() -> [UInt8] {
        let byteCount = members.reduce(0) { sum, group in
            sum + 1000 + group.reduce(0) { $0 + $1.deviceToken.bytes.count } + (group.first?.content.byteCount ?? 0)
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
        writer.object { writer in
            writer.value("notif_id", first.id)
            writer.array("tokens") { writer in
                for device in devices { writer.element(device.deviceToken.revealed) }
            }
            writer.value("platform", first.platform.rawValue)
            first.content.write(for: devices, in: profile, to: &writer)
        }
    }

    /// In the order of their first members.
    private static func grouped(_ notifications: [Notification], _ profile: PayloadProfile) -> [[Notification]] {
        struct GroupKey: Hashable {
            let platform: Platform
            let topic: String?
            let content: [UInt8]
        }
        var places: [GroupKey: Int] = [:]
        var groups: [[Notification]] = []
        for notification in notifications {
            guard let content = notification.content.groupKey(in: profile) else {
                groups.append([notification])
                continue
            }
            let key = GroupKey(
                platform: notification.platform, topic: notification.platform == .apn ? notification.apnTopic : nil, content: content)
            if let place = places[key] {
                groups[place].append(notification)
            } else {
                places[key] = groups.count
                groups.append([notification])
            }
        }
        return groups
    }
}

extension PayloadProfile {
    /// The JSON that gorush gets for at most 100 notifications.
    package func encode(_ notifications: [Notification]) -> [UInt8] {
        PushRequest(notifications, profile: self).encoded()
    }
}
