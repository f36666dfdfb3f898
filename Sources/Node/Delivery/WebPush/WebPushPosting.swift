/// Posts messages to push services and returns their answers.
package protocol WebPushPosting: Sendable {
    func post(_ message: WebPushMessage) async -> WebPushReply
}

/// The result of a post to a push service.
package struct WebPushReply: Sendable {
    package let answer: WebPushAnswer
    /// nil without a response.
    package let status: Int?
    /// Why the answer is not ``WebPushAnswer/accepted``, for the log. Names neither the subscription nor the push service.
    package let reason: String?

    package init(_ answer: WebPushAnswer, status: Int? = nil, reason: String? = nil) {
        self.answer = answer
        self.status = status
        self.reason = reason
    }
}

/// Web Push as a node does it.
package struct WebPushEndpoint: Sendable {
    package let posting: any WebPushPosting
    /// The VAPID public key in base64url, which clients need before they subscribe.
    package let publicKey: String
    /// The maximum rate of posts to one push service, a second, and the burst.
    package let rate: (perSecond: Double, burst: Double)

    package init(_ posting: any WebPushPosting, publicKey: String, rate: (perSecond: Double, burst: Double) = (100, 1000)) {
        self.posting = posting
        self.publicKey = publicKey
        self.rate = rate
    }
}
