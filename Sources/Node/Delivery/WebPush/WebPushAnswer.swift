package import Core
package import NodeMetrics

/// A push service's answer to a post, RFC 8030 section 5 and RFC 8292 section 4.2.
///
/// | status | meaning |
/// |---|---|
/// | 2xx | accepted |
/// | 404, 410 | the subscription has ended |
/// | 401, 403 | the VAPID key is not accepted |
/// | 406, 408, 425, 429, 5xx | later, after `Retry-After` |
/// | 3xx, 400, 413, others | the notification is refused; after 413 it was posted again without its data, if that is smaller |
package enum WebPushAnswer: Hashable, Sendable {
    case accepted
    case gone
    case keyRefused
    /// - Parameter retryAfter: the delay that the push service asks for.
    case later(retryAfter: Duration?)
    /// No answer: no connection, time-out, or an address that must not be connected to.
    case unanswered
    /// Nothing was posted, as names of others took the new connections to its address.
    case addressBusy
    case refused
    /// The message fits into no push message: nothing was posted.
    case tooLong

    /// - Parameter retryAfter: the header; ignored unless the status asks to try later.
    package init(status: Int, retryAfter: String? = nil, now: Timestamp) {
        switch status {
        case 200..<300: self = .accepted
        case 404, 410: self = .gone
        case 401, 403: self = .keyRefused
        // Microsoft's service (WNS) answers 406 to a sender above its rate.
        case 406, 408, 425, 429, 500...: self = .later(retryAfter: retryAfter.flatMap { RetryAfter.parse($0, now: now) })
        default: self = .refused
        }
    }

    /// Whether it counts towards pausing the origin: an answer 4xx, or 3xx, other than those about one device or the time.
    var isRefusal: Bool { self == .refused || self == .keyRefused }

    /// The pause of a device after a refused key: the push service does not change its mind within seconds.
    private static let keyPause = Duration.seconds(60)

    /// The longest pause that a push service may ask for.
    package static let longestRetryAfter = Duration.seconds(3600)

    func result(id: String, status: Int?, reason: String?) -> PostResult {
        switch self {
        case .accepted: PostResult(outcome: .accepted, status: status, postedTokenCount: 1)
        case .gone:
            PostResult(
                outcome: .accepted, status: status, postedTokenCount: 1,
                failures: [PostResult.Failure(notificationID: id, reason: .subscriptionGone)])
        case .refused: PostResult(outcome: .refused, status: status, reason: reason, postedTokenCount: 1)
        case .keyRefused:
            PostResult(
                outcome: .unclear(retryAfter: Self.keyPause), status: status, reason: reason, isOperatorsMistake: true, postedTokenCount: 1)
        case .later(let retryAfter):
            PostResult(
                outcome: .unclear(retryAfter: retryAfter.map { min($0, Self.longestRetryAfter) }), status: status, reason: reason,
                postedTokenCount: 1)
        case .addressBusy: PostResult(outcome: .notPosted, reason: reason, postedTokenCount: 1)
        // Anybody can have a subscription at an address of the service that does not answer.
        case .unanswered: PostResult(outcome: .unclear(retryAfter: nil), status: status, reason: reason, postedTokenCount: 1)
        case .tooLong: PostResult(outcome: .unpostable, reason: reason, postedTokenCount: 1)
        }
    }

    package var label: WebPushAnswerLabel {
        switch self {
        case .accepted: .accepted
        case .gone: .gone
        case .keyRefused: .keyRefused
        case .later, .addressBusy: .later
        case .unanswered: .unanswered
        case .refused, .tooLong: .refused
        }
    }
}
