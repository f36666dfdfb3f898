import Core

/// The result of a post.
package struct PostResult: Sendable {
    /// A token that gorush failed to deliver to.
    package struct Failure: Sendable {
        /// The id of the posted notification with the token.
        package let notificationID: String
        package let reason: FailureReason
        package var verdict: TokenVerdict { reason.verdict }

        package init(notificationID: String, reason: FailureReason) {
            self.notificationID = notificationID
            self.reason = reason
        }
    }

    package let outcome: PostOutcome
    /// The reason why the outcome is not `.accepted`, for the log.
    package let reason: String?
    /// The HTTP status; nil without a response.
    package let status: Int?
    /// Whether the outcome is `.failed` and stays so until the operator corrects the URL or the credentials.
    package let isOperatorsMistake: Bool
    package let postedTokenCount: Int
    /// The number of tokens that gorush counted as accepted; nil if it did not report it.
    package let countedTokenCount: Int?
    /// The number of posted notifications with an APNs topic. Newer versions of gorush count one more for each.
    package let topicCount: Int
    /// The failed tokens; reported only by a gorush that runs with `sync: true`.
    package let failures: [Failure]
    /// Number of failures that could not be matched to a notification.
    package let unmatchedFailureCount: Int
    /// For combined notifications: the id under which each was posted, keyed by its own id.
    package let sharedIDs: [String: String]

    /// Ids of notifications that gorush dropped because its queue was full, although it accepted the post.
    package var notAccepted: [String] { failures.filter { $0.reason == .queueFull }.map(\.notificationID) }

    /// Number of tokens that gorush ignored because their platform is disabled there.
    package var ignoredTokenCount: Int {
        guard let countedTokenCount else { return 0 }
        let expected = countedTokenCount > postedTokenCount ? postedTokenCount + topicCount : postedTokenCount
        return max(0, expected - countedTokenCount)
    }

    package init(
        outcome: PostOutcome, status: Int? = nil, reason: String? = nil, isOperatorsMistake: Bool = false,
        postedTokenCount: Int, countedTokenCount: Int? = nil, topicCount: Int = 0, failures: [Failure] = [], unmatchedFailureCount: Int = 0,
        sharedIDs: [String: String] = [:]
    ) {
        self.outcome = outcome
        self.status = status
        self.reason = reason
        self.isOperatorsMistake = isOperatorsMistake
        self.postedTokenCount = postedTokenCount
        self.countedTokenCount = countedTokenCount
        self.topicCount = topicCount
        self.failures = failures
        self.unmatchedFailureCount = unmatchedFailureCount
        self.sharedIDs = sharedIDs
    }
}

extension PostResult {
    /// Failures are matched by notif_id. If several devices share one, or gorush reports none, the masked token must match exactly one device. A
    /// gorush that retries (`max_retry`) logs each attempt: only the last one counts, so that a token is a single failure for ``FailureGuard``.
    init(acceptedBy reply: GorushReply, status: Int, _ push: PushRequest, tokenCount: Int) {
        let groups = reply.failures.isEmpty ? [:] : Dictionary(push.members.map { ($0[0].id, $0) }) { first, _ in first }
        let matched = reply.failures.compactMap { failure -> Failure? in
            let candidates: [Notification]
            if let id = failure.notificationID {
                candidates = groups[id] ?? []
            } else {
                candidates = push.members.flatMap(\.self).filter { failure.platform == nil || failure.platform == $0.platform }
            }
            let isNamed = failure.notificationID != nil && candidates.count == 1
            let matches = isNamed ? candidates : candidates.filter { failure.masks($0.deviceToken) }
            guard matches.count == 1, let match = matches.first else { return nil }
            return Failure(notificationID: push.ownID(of: match), reason: FailureReason(platform: match.platform, error: failure.error))
        }
        var seen: Set<String> = []
        let failures = Array(matched.reversed().filter { seen.insert($0.notificationID).inserted }.reversed())
        // A single one may have found it full for a moment.
        guard tokenCount < 2 || failures.count(where: { $0.reason == .queueFull }) < tokenCount else {
            self.init(outcome: .failed(retryAfter: nil), status: status, reason: "gorush's queue is full", postedTokenCount: tokenCount)
            return
        }
        var sharedIDs: [String: String] = [:]
        for group in push.members where group.count > 1 {
            for member in group.dropFirst() { sharedIDs[member.id] = group[0].id }
        }
        self.init(
            outcome: .accepted, status: status, postedTokenCount: tokenCount, countedTokenCount: reply.counts,
            topicCount: push.members.count { $0[0].platform == .apn && !$0[0].apnTopic.isEmpty }, failures: failures,
            unmatchedFailureCount: reply.failures.count - matched.count, sharedIDs: sharedIDs)
    }
}
