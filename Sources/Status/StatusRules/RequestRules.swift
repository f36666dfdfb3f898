package import Core
package import StatusProtocol
import Waku

/// Decides which devices a request notifies, and its reports, `PROTOCOL.md` section 6.
package struct RequestRules: Sendable {
    private let maximumAge: Duration
    private let server: ServerMark?

    /// - Parameters:
    ///   - maximumAge: older requests are dropped; a notification that gorush has not accepted by then expires.
    ///   - server: the identity to which requests are sent.
    package init(maximumAge: Duration, server: ServerMark? = nil) {
        self.maximumAge = maximumAge
        self.server = server
    }

    /// The time at which notifications of this request expire; nil if it is too old already. A request without a timestamp is fresh.
    package func expiry(of timestamp: Timestamp, at now: Timestamp) -> Timestamp? {
        // A sender whose clock is ahead must not keep its request alive for longer.
        let sent = timestamp.rawValue == 0 ? now : min(timestamp, now)
        let expiry = sent + maximumAge
        return expiry < now ? nil : expiry
    }

    /// An outcome for each entry, in order.
    package func decide(
        _ request: PushNotificationRequest,
        registration: (RegistrationKey) throws -> StoredRegistration?,
        delivery: (DeliveryID) throws -> DeliveryState?
    ) rethrows -> [EntryOutcome] {
        // Deliveries of earlier entries of this request.
        var started: Set<DeliveryID> = []
        var outcomes: [EntryOutcome] = []
        for entry in request.requests {
            let outcome = try outcome(of: entry, messageID: request.messageID, started: started, registration, delivery)
            if case .deliver(let id, _, _) = outcome { started.insert(id) }
            outcomes.append(outcome)
        }
        return outcomes
    }

    /// The recipient; nil if public_key is not a key hash.
    package func key(of entry: PushNotification) -> RegistrationKey? {
        KeyHash(bytes: entry.publicKey).map { RegistrationKey(keyHash: $0, installationID: entry.installationID, server: server) }
    }

    private func outcome(
        of entry: PushNotification, messageID: [UInt8], started: Set<DeliveryID>,
        _ registration: (RegistrationKey) throws -> StoredRegistration?, _ delivery: (DeliveryID) throws -> DeliveryState?
    ) rethrows -> EntryOutcome {
        guard entry.kind != .unknown else { return .report(.unknown) }
        guard let key = key(of: entry) else { return .report(.notRegistered) }
        guard let stored = try registration(key) else { return .report(.notRegistered) }
        guard entry.accessToken == stored.registration.accessToken else { return .report(.wrongToken) }
        // Apple and Google would not accept it, and it must not delay notifications in the same post. Checked before the filters, so that the
        // report does not disclose whether the sender is blocked.
        guard !entry.isTooLarge else { return .report(.internalError) }
        guard NotificationFilter.admits(entry, for: stored.registration) else { return .report(nil) }
        let id = DeliveryID(messageID: messageID, key: key)
        if started.contains(id) { return .await(id) }
        switch try delivery(id) {
        case .accepted: return .report(nil)
        case .waiting: return .await(id)
        case nil: return .deliver(id, entry, to: stored)
        }
    }
}

package enum EntryOutcome: Hashable, Sendable {
    /// nil is success.
    case report(PushNotificationReport.ErrorType?)
    case deliver(DeliveryID, PushNotification, to: StoredRegistration)
    /// The outcome of a delivery that another entry or request started.
    case await(DeliveryID)
}
