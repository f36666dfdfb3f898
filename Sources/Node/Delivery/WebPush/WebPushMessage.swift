package import Core
import WakuCrypto

/// A notification for a Web Push receiver. Prints only its id.
package struct WebPushMessage: Sendable, CustomStringConvertible, CustomReflectable {
    package let id: String
    package let subscription: PushSubscription
    package let content: WebPushContent
    /// The time at which it is given up.
    package let expires: Timestamp
    /// Equal for messages of which the push service keeps only the latest while the device is not connected; nil: it keeps this one beside others.
    package let collapseKey: [UInt8]?

    package init(
        id: String, subscription: PushSubscription, content: WebPushContent, expires: Timestamp, collapseKey: [UInt8]? = nil
    ) {
        self.id = id
        self.subscription = subscription
        self.content = content
        self.expires = expires
        self.collapseKey = collapseKey
    }

    package var description: String { "notification \(id)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension WebPushMessage {
    private static let testLifetime = Duration.seconds(60)

    /// A notification by which operators test a subscription. It is of no protocol, so that apps ignore it.
    package static func test(of subscription: PushSubscription, at now: Timestamp) -> WebPushMessage {
        let id = "test-" + hexString(randomBytes(12))
        let content = Array(#"{"v":1,"protocol":"test","id":"\#(id)"}"#.utf8)
        return WebPushMessage(
            id: id, subscription: subscription, content: WebPushContent(whole: content, truncated: content, urgency: .normal),
            expires: now + testLifetime)
    }
}

extension QueuedDelivery {
    /// nil for a device of gorush, and for protocols without Web Push.
    func webPushMessage(_ settings: NotificationSettings) -> WebPushMessage? {
        guard case .webPush(let subscription) = address.target else { return nil }
        let id = waiting.delivery.notificationID
        return content.webPushContent(id: id).map {
            WebPushMessage(
                id: id, subscription: subscription, content: $0, expires: waiting.expires,
                collapseKey: collapseKey(settings, id: id))
        }
    }

    private func collapseKey(_ settings: NotificationSettings, id: String) -> [UInt8]? {
        guard !settings.isEmpty else { return nil }
        let subject = content.subject
        return switch settings.webPushCollapse(of: subject) {
        case nil, .never: nil
        case .chat where !subject.chat.isEmpty: Array("chat ".utf8) + subject.chat
        case .chat, .message: Array("message \(id)".utf8)
        }
    }
}
