/// What became of one post.
public struct PostResult: Sendable {
    /// A token that gorush failed to deliver to.
    public struct Failure: Sendable {
        /// The id of the notification that the token came with, one of those that were posted.
        public let notificationID: String
        public let verdict: TokenVerdict
        /// As APNs or Firebase put it, at most 1 KiB.
        public let error: String
    }

    public let outcome: DeliveryQueue.Outcome
    /// For a log line: why the outcome is not `.accepted`.
    public let reason: String?
    public let postedTokenCount: Int
    /// Of those, how many gorush says that it took; nil when it did not say.
    public let countedTokenCount: Int?
    /// Only from a gorush that runs with `sync: true`.
    public let failures: [Failure]
    /// Failures that can't be told to be of one notification.
    public let unmatchedFailureCount: Int

    /// Tokens that gorush took no notice of, because their platform is switched off there.
    public var ignoredTokenCount: Int {
        max(0, postedTokenCount - (countedTokenCount ?? postedTokenCount))
    }

    init(
        outcome: DeliveryQueue.Outcome, reason: String? = nil, postedTokenCount: Int, countedTokenCount: Int? = nil,
        failures: [Failure] = [], unmatchedFailureCount: Int = 0
    ) {
        self.outcome = outcome
        self.reason = reason
        self.postedTokenCount = postedTokenCount
        self.countedTokenCount = countedTokenCount
        self.failures = failures
        self.unmatchedFailureCount = unmatchedFailureCount
    }
}

extension PostResult {
    /// Failures are matched by notif_id. Where several devices share one, or gorush names none, the masked token must fit one alone.
    init(acceptedBy reply: GorushReply, _ push: PushRequest, tokenCount: Int) {
        let groups = Dictionary(zip(push.notifications.map(\.id), push.members)) { first, _ in first }
        let failures = reply.failures.compactMap { failure -> Failure? in
            let candidates: [Notification]
            if let id = failure.notificationID {
                candidates = groups[id] ?? []
            } else {
                candidates = push.members.flatMap(\.self).filter { failure.platform == nil || failure.platform == $0.platform }
            }
            let isNamed = failure.notificationID != nil && candidates.count == 1
            let matches = isNamed ? candidates : candidates.filter { failure.masks($0.deviceToken) }
            guard matches.count == 1, let match = matches.first else { return nil }
            let verdict = TokenVerdict(platform: match.platform, error: failure.error)
            return Failure(notificationID: match.id, verdict: verdict, error: failure.error)
        }
        self.init(
            outcome: .accepted, postedTokenCount: tokenCount, countedTokenCount: reply.counts, failures: failures,
            unmatchedFailureCount: reply.failures.count - failures.count)
    }
}
