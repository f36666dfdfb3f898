package import Delivery
import NodeMetrics

extension AdminAPI {
    /// A test notification for a Web Push subscription.
    package struct WebPushTest: Codable, Sendable {
        /// The JSON that browsers make.
        package let subscription: String
        package init(subscription: String) { self.subscription = subscription }
    }

    /// The result of a ``WebPushTest``. Names no push service.
    package struct WebPushTested: Codable, Sendable {
        /// Why nothing was posted; nil otherwise.
        package var problem: String?
        /// See `WebPushAnswerLabel`; nil if nothing was posted.
        package var outcome: String?
        /// nil without a response.
        package var status: Int?
        package var reason: String?

        package init(problem: String) {
            self.problem = problem
        }

        package init(_ reply: WebPushReply) {
            outcome = reply.answer.label.rawValue
            status = reply.status
            reason = reply.reason
        }
    }
}
