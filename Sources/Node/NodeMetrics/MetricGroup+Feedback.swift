extension MetricGroup {
    /// Token failures, and gorush's feedback hook.
    package static let feedback = MetricGroup(
        metrics: [.tokenFailures, .tokenFailuresSetAside, .registrationsRemoved, .feedback],
        counters: [
            .tokenDead, .tokenFailureUnmatched, .tokenDoubtful, .tokenFailedOtherwise, .tokenOperatorsMistake, .messageFailed,
            .tokenHeldOff, .tokenFailureStale, .tokenFailureRepeated, .tokenRemoved, .tokenDisabled, .tokenFailureLost, .feedbackReceived,
            .feedbackMalformed, .feedbackForbidden, .feedbackShed,
        ])
}

extension Metric {
    package static let tokenFailures = Metric(
        "waku_push_token_failures_total", TokenFailureLabel.self,
        help: "Failed notifications, by the verdict on the token.")
    package static let tokenFailuresSetAside = Metric(
        "waku_push_token_failures_set_aside_total", SetAsideLabel.self, help: "Token failures that were set aside, by reason.")
    package static let registrationsRemoved = Metric(
        "waku_push_registrations_removed_total", RemovalLabel.self,
        help:
            "Registrations that the node removed: because of their tokens, because they were not renewed, or displaced by new devices when a limit was reached."
    )
    package static let feedback = Metric("waku_push_feedback_total", FeedbackLabel.self, help: "Calls of gorush's feedback hook.")
}

extension Counter {
    package static let tokenDead = Counter("token dead", .tokenFailures, TokenFailureLabel.dead)
    package static let tokenFailureUnmatched = Counter(
        "token failure that names no notification", .tokenFailuresSetAside, SetAsideLabel.unmatched)
    package static let tokenDoubtful = Counter("token doubtful", .tokenFailures, TokenFailureLabel.doubtful)
    package static let tokenFailedOtherwise = Counter(
        "token failure that says nothing of the token", .tokenFailures, TokenFailureLabel.other)
    package static let tokenOperatorsMistake = Counter(
        "token failure by the operator's mistake", .tokenFailures, TokenFailureLabel.operatorsMistake)
    package static let messageFailed = Counter(
        "notification that the push service does not accept, such as one that is too long", .tokenFailures, TokenFailureLabel.message)
    package static let tokenHeldOff = Counter("token failure held off: too many fail alike", .tokenFailuresSetAside, SetAsideLabel.heldOff)
    package static let tokenFailureStale = Counter(
        "token failure of a registration that is gone or newer", .tokenFailuresSetAside, SetAsideLabel.stale)
    package static let tokenFailureRepeated = Counter("token failure told before", .tokenFailuresSetAside, SetAsideLabel.repeated)
    package static let tokenRemoved = Counter("registration ended: dead token", .registrationsRemoved, RemovalLabel.dead)
    package static let tokenDisabled = Counter(
        "registration ended: token in doubt for too long", .registrationsRemoved, RemovalLabel.inDoubt)
    package static let tokenFailureLost = Counter("token failure not stored", .tokenFailuresSetAside, SetAsideLabel.lost)
    package static let feedbackReceived = Counter("feedback received", .feedback, FeedbackLabel.taken)
    package static let feedbackMalformed = Counter("feedback malformed", .feedback, FeedbackLabel.malformed)
    package static let feedbackForbidden = Counter("feedback without the secret", .feedback, FeedbackLabel.forbidden)
    package static let feedbackShed = Counter("feedback dropped: too much waits", .feedback, FeedbackLabel.shed)
}

package enum TokenFailureLabel: String, MetricLabel {
    package static let labelName = "verdict"
    case dead, doubtful
    case operatorsMistake = "operators_mistake"
    /// The notification itself was not accepted, as when it is too long: not a failure of the push service.
    case message
    case other
}

/// Why a failure was set aside.
package enum SetAsideLabel: String, MetricLabel {
    package static let labelName = "reason"
    case unmatched
    case heldOff = "held_off"
    case stale, repeated, lost
}

package enum RemovalLabel: String, MetricLabel {
    package static let labelName = "reason"
    case dead
    case inDoubt = "in_doubt"
    case expired, displaced
}

package enum FeedbackLabel: String, MetricLabel {
    package static let labelName = "result"
    case taken, malformed, forbidden, shed
}
