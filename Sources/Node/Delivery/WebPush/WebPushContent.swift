/// The content of a notification for a Web Push receiver: UTF-8 JSON.
public struct WebPushContent: Hashable, Sendable {
    package enum Urgency: String, Sendable {
        case normal, high
    }

    /// Everything.
    package let whole: [UInt8]
    /// Without the message, and with `"truncated":true`: for messages that do not fit into a push message, or are too large
    /// for the push service.
    package let truncated: [UInt8]
    package let urgency: Urgency

    package init(whole: [UInt8], truncated: [UInt8], urgency: Urgency) {
        self.whole = whole
        self.truncated = truncated
        self.urgency = urgency
    }
}
