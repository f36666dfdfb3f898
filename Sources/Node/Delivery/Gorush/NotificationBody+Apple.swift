package import Core

extension NotificationBody {
    /// The maximum length of a `collapse_id` in bytes: APNs refuses a notification with a longer one.
    private static let maximumCollapseIDByteCount = 64

    func writeApple(to writer: inout JSONWriter) {
        let isLocalized = style.title?.key != nil || style.body?.key != nil
        if !isLocalized { writeTitleAndMessage(to: &writer) }
        if !first.apnTopic.isEmpty { writer.value("topic", first.apnTopic) }
        writeCollapseID(to: &writer)
        if style.isForSandbox ?? first.isForSandbox { writer.value("development", true) }
        if style.isContentAvailable == true { writer.value("content_available", true) }
        writeText("sound", style.sound, to: &writer)
        if let priority = style.priority { writer.value("priority", priority.rawValue) }
        writeText("push_type", style.pushType, to: &writer)
        if style.isMutable == true { writer.value("mutable_content", true) }
        if let badge = style.badge { writer.value("badge", badge) }
        writeText("category", style.category, to: &writer)
        if let level = style.interruptionLevel { writer.value("interruption_level", level.rawValue) }
        writeText("thread-id", threadID, to: &writer)
        writeExpiration(to: &writer)
        if isLocalized { writeAlert(to: &writer) }
        writer.object("data") { writeData(to: &$0) }
    }

    /// Writes APNs's collapse id: a device replaces a shown notification with the same id, at least when the same notification is delivered twice.
    package func writeCollapseID(to writer: inout JSONWriter) {
        if let collapseID { writer.value("collapse_id", collapseID) }
    }

    var collapseID: String? {
        guard platform == .apn, style.collapse != .never else { return nil }
        let id = collapsingChat ?? first.id
        return (1...Self.maximumCollapseIDByteCount).contains(id.utf8.count) ? id : nil
    }

    /// Writes texts and keys together in the alert, because gorush drops `message` when it writes a key into the alert.
    private func writeAlert(to writer: inout JSONWriter) {
        writer.object("alert") { writer in
            writeText("title", style.title?.text, to: &writer)
            writeText("title-loc-key", style.title?.key, to: &writer)
            writeText("body", style.body?.text, to: &writer)
            writeText("loc-key", style.body?.key, to: &writer)
        }
    }

    func writeExpiration(to writer: inout JSONWriter) {
        if let expiration { writer.value("expiration", expiration) }
    }
}
