import Delivery

/// The result of posting these notifications, with the same verdict on each token.
func result(_ outcome: PostOutcome, _ verdict: TokenVerdict?, _ notifications: [Notification]) -> PostResult {
    let failures = verdict.map { verdict in
        notifications.map { PostResult.Failure(notificationID: $0.id, reason: reason(verdict)) }
    }
    return PostResult(
        outcome: outcome, reason: "as the test says", postedTokenCount: notifications.count, failures: failures ?? [])
}

private func reason(_ verdict: TokenVerdict) -> FailureReason {
    switch verdict {
    case .dead: .unregistered
    case .doubtful: .badDeviceToken
    case .operatorsMistake: .credentials
    case .message: .message
    case .other: .other
    }
}
