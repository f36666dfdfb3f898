package import Core

/// The times of a stored subscription. Those of a damaged row may be any numbers: sums with them must not trap.
package struct StoredSubscription: Hashable, Sendable {
    /// `sig_ts` of the request that created or renewed it, Unix seconds.
    package let signedAt: Int64
    /// The arrival of that request if its `sig_ts` was ahead: ``AheadTimes``. Unix seconds.
    package let arrivedAt: Int64?

    package init(signedAt: Int64, arrivedAt: Int64? = nil) {
        (self.signedAt, self.arrivedAt) = (signedAt, arrivedAt)
    }

    /// The lowest `sig_ts` of a request that may replace this subscription; a request with a lower one is a replay.
    var order: Int64 {
        arrivedAt.map { min(max($0, .min + SessionTimes.arrivalTolerance) - SessionTimes.arrivalTolerance, signedAt) } ?? signedAt
    }

    /// Unix seconds.
    package var expiresAt: Int64 { min(signedAt, .max - SessionTimes.subscriptionLifetime) + SessionTimes.subscriptionLifetime }

    /// Whether the `sig_ts` is at least 14 days old.
    package func isExpired(at now: Int64) -> Bool { now >= expiresAt }
}

/// The name of an ended subscription, kept so that an older subscription cannot be replayed.
package struct UnsubscribedName: Hashable, Sendable {
    /// Subscriptions with a lower `sig_ts` are refused. Unix seconds.
    package let signedAt: Int64
    /// When the name is forgotten, Unix seconds.
    package let expiresAt: Int64

    package init(signedAt: Int64, expiresAt: Int64) {
        self.signedAt = signedAt
        self.expiresAt = expiresAt
    }
}

/// Times of the protocol, in seconds.
package enum SessionTimes {
    static let day: Int64 = 86_400
    /// Lifetime of a subscription, and maximum age of its `sig_ts`.
    package static let subscriptionLifetime = 14 * day
    /// A subscription's `sig_ts` must be ahead by less than this.
    package static let subscriptionLead = day
    /// Maximum difference of an unsubscription's `sig_ts` from now, in either direction.
    package static let unsubscriptionWindow = day
    /// How long the name of an unsubscribed device is kept.
    package static let nameRetention = 15 * day
    /// A request whose `sig_ts` is further ahead is ordered by its arrival.
    package static let clockTolerance: Int64 = 60
    /// A stored `sig_ts` that is ahead by less, without a recorded arrival, is ordered by itself: the node's clock may have been set back.
    package static let clockStepTolerance: Int64 = 600
    /// Tolerance for clock differences: a request may replace one that is ordered by arrival if signed at most this long before that arrival.
    package static let arrivalTolerance: Int64 = 300
}

/// Decides on subscriptions and unsubscriptions. Checks run in this order; the first failure is the answer.
///
///     shape of every field, service name    SessionProtocol's forms
///     service available, time window        admit
///     keys and signatures                   SignatureVerifier
///     stored data                           decide
package struct SubscriptionRules: Sendable {
    /// Push services with a gorush endpoint.
    package let availableServices: Set<PushService>
    package let maximumDevicesPerAccount: Int
    /// The maximum number of Web Push devices of one push service; nil for no limit.
    package let maximumDevicesPerOrigin: Int?

    package init(availableServices: Set<PushService>, maximumDevicesPerAccount: Int = 100, maximumDevicesPerOrigin: Int? = nil) {
        self.availableServices = availableServices
        self.maximumDevicesPerAccount = maximumDevicesPerAccount
        self.maximumDevicesPerOrigin = maximumDevicesPerOrigin
    }

    /// The change that a subscription makes to the store.
    package enum Change: Hashable, Sendable {
        /// Inserts a row, replacing an expired one with the same name.
        case insert
        case update
    }

    /// The change that an unsubscription makes to the store.
    package enum Removal: Hashable, Sendable {
        /// Deletes the row and its notifications in the outbox, and keeps the name.
        case remove(leaving: UnsubscribedName)
        case nothingToRemove
    }

    /// - Parameters:
    ///   - form: Well-formed, not verified yet.
    ///   - now: Unix seconds.
    /// - Throws: ``RequestError/Code/serviceNotAvailable``, ``RequestError/Code/error``
    package func admit(_ form: SubscriptionForm, at now: Int64) throws(RequestError) {
        try checkService(form.device.service)
        let age = now - form.authority.signedAt
        guard age <= SessionTimes.subscriptionLifetime else { throw RequestError(.error, "sig_ts: older than 14 days") }
        guard -age < SessionTimes.subscriptionLead else { throw RequestError(.error, "sig_ts: 24 hours or more in the future") }
    }

    /// - Parameters:
    ///   - form: Well-formed, not verified yet.
    ///   - now: Unix seconds.
    /// - Throws: ``RequestError/Code/serviceNotAvailable``, ``RequestError/Code/error``
    package func admit(_ form: UnsubscriptionForm, at now: Int64) throws(RequestError) {
        try checkService(form.device.service)
        guard abs(now - form.authority.signedAt) <= SessionTimes.unsubscriptionWindow else {
            throw RequestError(.error, "sig_ts: more than 24 hours from now")
        }
    }

    private func checkService(_ service: PushService) throws(RequestError) {
        guard availableServices.contains(service) else { throw RequestError(.serviceNotAvailable, "service: not served here") }
    }

    /// - Parameters:
    ///   - signedAt: `sig_ts` of an admitted and verified subscription.
    ///   - stored: The stored subscription with the same account, service and token.
    ///   - left: The kept name, if the subscription was ended.
    ///   - used: The recorded ahead times of this name.
    ///   - deviceCount: The number of the account's subscriptions that are not expired, without one that makes room: see ``DevicePlaces``.
    ///   - now: Unix seconds.
    /// - Throws: ``RequestError/Code/error`` for a replay, or if the account has too many devices.
    package func decideSubscription(
        signedAt: Int64, stored: StoredSubscription?, left: UnsubscribedName?, used: AheadTimes = AheadTimes(),
        deviceCount: @autoclosure () -> Int, at now: Int64
    ) throws(RequestError) -> Change {
        if let stored, !stored.isExpired(at: now) {
            guard signedAt >= stored.order else { throw RequestError(.error, "sig_ts: older than that of the subscription") }
            // The same request again changes nothing.
            if signedAt != stored.signedAt { try checkUnused(.subscription, signedAt: signedAt, among: used, at: now) }
            return .update
        }
        try checkUnused(.subscription, signedAt: signedAt, among: used, at: now, isEnded: true)
        if let left, now < left.expiresAt, signedAt < left.signedAt {
            throw RequestError(.error, "sig_ts: older than the unsubscription")
        }
        guard deviceCount() < maximumDevicesPerAccount else {
            throw RequestError(.error, "pubkey: \(maximumDevicesPerAccount) devices are subscribed already")
        }
        return .insert
    }

    /// - Parameter isEnded: whether the device has no subscription. A time that may have been used then could restore it, also once the clock has
    ///   passed that time. A subscribed device must be able to renew and to leave by the present time.
    private func checkUnused(
        _ kind: AheadTime.Kind, signedAt: Int64, among used: AheadTimes, at now: Int64, isEnded: Bool = false
    ) throws(RequestError) {
        let isDropped = used.mayBeDropped(signedAt) && (isEnded || AheadTime.isAhead(signedAt, at: now))
        guard !isDropped, !used.contains(kind, signedAt) else { throw RequestError(.error, "sig_ts: of a request that was replaced") }
    }

    /// - Parameters:
    ///   - signedAt: `sig_ts` of an admitted and verified unsubscription.
    ///   - stored: The stored subscription with the same account, service and token.
    ///   - used: The recorded ahead times of this name.
    ///   - now: Unix seconds.
    /// - Throws: ``RequestError/Code/error`` for a replay.
    package func decideUnsubscription(
        signedAt: Int64, stored: StoredSubscription?, used: AheadTimes = AheadTimes(), at now: Int64
    ) throws(RequestError) -> Removal {
        guard let stored, !stored.isExpired(at: now) else { return .nothingToRemove }
        guard signedAt >= stored.order else { throw RequestError(.error, "sig_ts: older than that of the subscription") }
        try checkUnused(.unsubscription, signedAt: signedAt, among: used, at: now)
        // Both times may be up to a day in the future; keeping such a time would lock the device out until then.
        let latest = min(max(signedAt, stored.signedAt), now)
        return .remove(leaving: UnsubscribedName(signedAt: latest, expiresAt: now + SessionTimes.nameRetention))
    }
}
