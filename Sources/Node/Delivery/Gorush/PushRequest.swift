import Core

/// The body of gorush's `POST /api/push`: a JSON object with one array, `notifications`.
///
/// Each notification has its own `notif_id`, since gorush masks tokens in its reports. Devices with the same platform, topic,
/// ``NotificationFormat/groupKey(of:)`` and operator settings share one notification, with the id of the first. Bytes are written as `0x` and
/// lowercase digits.
///
/// Without settings, notifications for APNs are alerts in all profiles, and their `notif_id` is also their `collapse_id`, so that a device replaces
/// one that is delivered twice; those for Firebase have no equivalent.
struct PushRequest {
    /// The devices of each entry, at least one, with the ids that are posted.
    let members: [[Notification]]
    /// The ids of the notifications by the ids that are posted, where these differ.
    private let ownIDs: [String: String]
    private let format: NotificationFormat

    init(_ notifications: [Notification], format: NotificationFormat) {
        self.format = format
        let posted = format.profile == .private ? notifications.map { $0.renamed(format.postedID(of: $0.id)) } : notifications
        ownIDs =
            format.profile == .private
            ? Dictionary(zip(posted, notifications).map { ($0.id, $1.id) }, uniquingKeysWith: { first, _ in first }) : [:]
        members = Self.grouped(posted, format)
    }

    /// The id that a notification of ``members`` had before it was posted.
    func ownID(of notification: Notification) -> String { ownIDs[notification.id] ?? notification.id }

    /// The JSON in UTF-8.
    func encoded(at now: Timestamp) -> [UInt8] {
        var writer = JSONWriter(capacity: 2000 * members.count)
        writer.object { writer in
            writer.array("notifications") { writer in
                for group in members { write(group, at: now, to: &writer) }
            }
        }
        return writer.bytes
    }

    private func write(_ devices: [Notification], at now: Timestamp, to writer: inout JSONWriter) {
        guard let body = NotificationBody(devices, format, at: now) else { return }
        let first = body.first
        writer.object { writer in
            writer.value("notif_id", first.id)
            writer.array("tokens") { writer in
                for device in devices { writer.element(device.deviceToken.revealed) }
            }
            writer.value("platform", first.platform.rawValue)
            first.content.write(body, to: &writer)
        }
    }

    /// Groups notifications, in the order of their first members.
    private static func grouped(_ notifications: [Notification], _ format: NotificationFormat) -> [[Notification]] {
        struct GroupKey: Hashable {
            let platform: Platform
            let topic: String?
            let content: [UInt8]
            /// nil without settings, as is the kind, by which settings may select.
            let style: NotificationStyle?
            let kind: ContentKind?
        }
        var places: [GroupKey: Int] = [:]
        var groups: [[Notification]] = []
        for notification in notifications {
            guard let content = format.groupKey(of: notification) else {
                groups.append([notification])
                continue
            }
            let key = GroupKey(
                platform: notification.platform, topic: notification.platform == .apn ? notification.apnTopic : nil, content: content,
                style: format.settings.isEmpty ? nil : format.settings.style(for: notification),
                kind: format.settings.isEmpty ? nil : notification.content.subject.kind)
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
