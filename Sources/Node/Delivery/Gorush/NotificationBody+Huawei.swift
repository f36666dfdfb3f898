import Core

extension NotificationBody {
    /// The times to live in seconds that Huawei accepts: up to 15 days.
    private static let timesToLive: ClosedRange<Int64> = 1...1_296_000
    /// Keeps all notifications for a device that is not connected. Without a key gorush sends 0, which keeps only the latest of an app.
    private static let keepAll = -1

    var huaweiTag: String? {
        switch style.collapse {
        case nil, .never: nil
        case .message: first.id
        case .chat: collapsingChat ?? first.id
        }
    }

    func writeHuawei(to writer: inout JSONWriter) {
        writeTitleAndMessage(to: &writer)
        if isVisible { writeText("sound", style.sound, to: &writer) }
        if let priority = style.priority { writer.value("priority", priority.rawValue) }
        let options: [(StaticString, String?)] = [
            ("tag", huaweiTag), ("channel_id", style.channel), ("group", threadID), ("title_loc_key", style.title?.key),
            ("body_loc_key", style.body?.key),
        ]
        if isVisible, options.contains(where: { $0.1?.isEmpty == false }) {
            writer.object("huawei_notification") { writer in
                for (name, text) in options { writeText(name, text, to: &writer) }
            }
        }
        writeHuaweiDelivery(to: &writer)
        writer.value("huawei_data", data)
    }

    /// The data as JSON text for Huawei, since gorush passes `data` on only to Apple and Firebase.
    private var data: String {
        var writer = JSONWriter(capacity: first.content.byteCount)
        writer.object { writeData(to: &$0) }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    func writeHuaweiDelivery(to writer: inout JSONWriter) {
        if style.collapse != nil { writer.value("huawei_collapse_key", collapsingChatGroup ?? Self.keepAll) }
        if let seconds = timeToLive {
            writer.value("huawei_ttl", "\(min(max(seconds, Self.timesToLive.lowerBound), Self.timesToLive.upperBound))s")
        }
        writeText("bi_tag", style.reportTag, to: &writer)
    }
}
