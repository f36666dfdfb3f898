package import Core
package import WakuCrypto

/// The result of a post to a push service.
package struct WebPushReply: Sendable {
    package let answer: WebPushAnswer
    /// nil without a response.
    package let status: Int?
    /// Why the answer is not ``WebPushAnswer/accepted``, for the log. Names neither the subscription nor the push service.
    package let reason: String?
    /// Where a response came from.
    package let address: IPAddress?
    /// The number of posts that the message took.
    package var postCount = 1

    package init(_ answer: WebPushAnswer, status: Int? = nil, reason: String? = nil, address: IPAddress? = nil) {
        self.answer = answer
        self.status = status
        self.reason = reason
        self.address = address
    }
}

/// Web Push as a node does it.
package struct WebPushEndpoint: Sendable {
    package let posting: WebPushClient
    /// The maximum rate of posts to one push service and to one address, a second, and the burst.
    package let rate: (perSecond: Double, burst: Double)
    /// The operator's settings, of which only `collapse` applies.
    package var settings: NotificationSettings = .none

    package init(_ posting: WebPushClient, rate: (perSecond: Double, burst: Double) = (100, 1000)) {
        self.posting = posting
        self.rate = rate
    }

    /// See ``WebPushClient/publicKeys``.
    package var keys: [P256PublicKey] { posting.publicKeys }

    /// The current key in base64url, which clients need before they subscribe.
    package var publicKey: String { Base64URL.encode(keys[0].bytes) }
}
