import Gorush

/// What posting these notifications came to, with the same verdict on each of their tokens.
func result(_ outcome: DeliveryQueue.Outcome, _ verdict: TokenVerdict?, _ notifications: [Notification]) -> PostResult {
    PostResult(
        outcome: outcome, uncountedTokens: 0,
        failures: verdict.map { verdict in notifications.map { TokenFailure(notificationID: $0.id, verdict: verdict) } } ?? [],
        reason: "as the test says")
}
