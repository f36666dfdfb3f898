import Core

extension NotificationBody {
    /// The maximum time to live in seconds that Firebase accepts: 28 days.
    private static let maximumTimeToLive: Int64 = 2_419_200

    private var firebaseTimeToLive: Int64? { timeToLive.map { min($0, Self.maximumTimeToLive) } }

    /// A notification replaces the shown one with the same tag. Repetitions have no collapse key, because Firebase keeps only four keys for a device
    /// that is not connected, and other notifications would be lost.
    var firebaseTag: String? {
        guard isVisible else { return nil }
        return switch style.collapse {
        case nil, .never: nil
        case .message: first.id
        case .chat: collapsingChat ?? first.id
        }
    }

    private var visibleSound: String? { isVisible ? style.sound : nil }
    private var visibleChannel: String? { isVisible ? style.channel : nil }

    func writeFirebase(to writer: inout JSONWriter) {
        writeTitleAndMessage(to: &writer)
        writeText("sound", visibleSound, to: &writer)
        if let priority = style.priority { writer.value("priority", priority.rawValue) }
        if style.isMutable == true { writer.value("mutable_content", true) }
        writeText("collapse_key", collapsingChat, to: &writer)
        if let seconds = firebaseTimeToLive { writer.value("time_to_live", seconds) }
        if hasOldOptions {
            writer.object("notification") { writer in
                writeText("tag", firebaseTag, to: &writer)
                writeText("android_channel_id", visibleChannel, to: &writer)
                writeText("title_loc_key", style.title?.key, to: &writer)
                writeText("body_loc_key", style.body?.key, to: &writer)
            }
        }
        if hasAndroidOptions || hasAndroidNotification {
            writer.object("android") { writer in
                writeText("collapse_key", collapsingChat, to: &writer)
                if let priority = style.priority { writer.value("priority", priority.rawValue) }
                if let seconds = firebaseTimeToLive { writer.value("ttl", "\(seconds)s") }
                if hasAndroidNotification { writeAndroidNotification(to: &writer) }
            }
        }
        writer.object("data") { writeData(to: &$0) }
    }

    private func writeAndroidNotification(to writer: inout JSONWriter) {
        writer.object("notification") { writer in
            writeText("tag", firebaseTag, to: &writer)
            writeText("channel_id", visibleChannel, to: &writer)
            writeText("sound", visibleSound, to: &writer)
            writeText("title_loc_key", style.title?.key, to: &writer)
            writeText("body_loc_key", style.body?.key, to: &writer)
        }
    }

    private func isSet(_ texts: String?...) -> Bool { texts.contains { $0?.isEmpty == false } }

    private var hasOldOptions: Bool { isSet(firebaseTag, visibleChannel, style.title?.key, style.body?.key) }
    private var hasAndroidNotification: Bool { hasOldOptions || isSet(visibleSound) }
    private var hasAndroidOptions: Bool { collapsingChat != nil || style.priority != nil || timeToLive != nil }

    func writeFirebaseDelivery(priority: String?, to writer: inout JSONWriter) {
        guard let seconds = firebaseTimeToLive else { return }
        writer.value("time_to_live", seconds)
        writer.object("android") { writer in
            writeText("priority", priority, to: &writer)
            writer.value("ttl", "\(seconds)s")
        }
    }
}
