package import Core
import Waku
import WakuCrypto

/// A notification for a Web Push receiver. Prints only its id.
package struct WebPushMessage: Sendable, CustomStringConvertible, CustomReflectable {
    package let id: String
    package let subscription: PushSubscription
    package let content: WebPushContent
    /// The time at which it is given up.
    package let expires: Timestamp

    package init(id: String, subscription: PushSubscription, content: WebPushContent, expires: Timestamp) {
        self.id = id
        self.subscription = subscription
        self.content = content
        self.expires = expires
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

extension PostableDelivery {
    /// nil for a device of gorush, and for protocols without Web Push.
    var webPushMessage: WebPushMessage? {
        guard case .webPush(let subscription) = address.target else { return nil }
        let id = waiting.delivery.notificationID
        return content.webPushContent(id: id).map {
            WebPushMessage(id: id, subscription: subscription, content: $0, expires: waiting.expires)
        }
    }
}
