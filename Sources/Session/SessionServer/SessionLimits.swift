package import NodeAPI
package import NodeMetrics
import SessionProtocol
import WakuCrypto
package import RateLimits
import Core

/// Applies rate limits to Session, under the option names of Status' limits, and counts refusals. Thread-safe. Limits apply per protocol.
///
/// | limit | applies to |
/// |---|---|
/// | `installations-by-key` | devices of an account |
/// | `registration-count` | subscriptions |
/// | `web-push-devices-by-origin` | Web Push subscriptions of a push service |
/// | `store-mib` | the store, of all protocols |
/// | `new-registrations` | new subscriptions, divided among the networks of clients |
/// | `notifications-by-target` | notifications for a subscription, by the storage server that reports the message |
/// | `notifications` | notifications of all accounts, divided among them |
package final class SessionLimits: ProtocolRateLimits {
    package let limiter: RateLimits
    package var label: ProtocolLabel { .session }
    package static let counters: LimitCounters? = .session
    /// Names networks within this process only.
    package let hasher = PayerHasher(key: .random())

    package init(_ limits: Limits) {
        limiter = RateLimits(limits)
    }

    var maximumDevicesPerAccount: Int { limiter.limits.installationsByKey ?? .max }
    var maximumDevicesPerOrigin: Int? { limiter.limits.webPushDevicesByOrigin }

    /// Requests are charged to the client's network, which is ``Standing/familiar`` from the first request: unlike keys, networks can't be generated.
    func charge(of network: SenderNetwork) -> Charge {
        Charge(hasher.payer(.source, network.block), .familiar)
    }

    /// Counts a request, for the list of the greatest payers.
    func worked(for network: SenderNetwork) { limiter.worked(for: charge(of: network)) }

    /// Counts a request that was not begun: see ``RequestTurns``.
    func refusedTurn() { limiter.displaced(.httpRequests, .familiar) }

    /// Counts a new subscription if limits allow it.
    ///
    /// - Parameter subscription: bytes that differ between the subscriptions that are made at this time.
    /// - Returns: The error if limits refuse it; nil otherwise.
    func admitsNew(_ subscription: [UInt8], from network: SenderNetwork, at now: Timestamp) -> RequestError? {
        limiter.refusesNew(ChargeID(subscription, at: now), by: charge(of: network), at: now) ? .limited : nil
    }

    /// Counts a notification if limits allow it: once, although several storage servers report its message.
    ///
    /// - Parameters:
    ///   - account: its account, which pays: a storage server may report any number of messages for accounts of its own.
    ///   - server: the key of the storage server. Each has its own rate for a subscription, so that one which invents messages does not use up the rate of
    ///     the others, whose reports are not repeated.
    func admits(
        _ delivery: DeliveryID, ofRow row: Int64, of account: AccountID, reportedBy server: [UInt8], at now: Timestamp
    ) -> Bool {
        guard !limiter.isUnlimited else { return true }
        let name = withUnsafeBytes(of: row, Array.init) + server
        let owner = Charge(hasher.payer(.owner, account.bytes), .stranger)
        return !limiter.refuses(once: ChargeID(delivery), for: owner) { $0.notification(for: name, by: owner, at: now) }
    }

    func admits(_ notification: PreparedMessage.Notification, at now: Timestamp) -> Bool {
        admits(
            notification.delivery, ofRow: notification.row, of: notification.account, reportedBy: notification.server, at: now)
    }

    /// Updates the number of subscriptions after requests: new ones were counted when they were admitted.
    func count(_ applied: AppliedRequests) {
        for case .removed(true) in applied.answers { limiter.removedRegistration() }
        limiter.displaced(.webPushDevicesByOrigin, .familiar, count: applied.fullOriginCount)
        for place in applied.replaced {
            limiter.removedRegistration()
            limiter.displaced(.accountPlaces, place.wasDelivered ? .known : .stranger)
        }
    }
}
