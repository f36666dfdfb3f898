package import PushTypes
package import StatusProtocol
package import Waku

/// Which devices a request notifies, and what it is answered, `PROTOCOL.md` section 6.
package struct RequestRules: Sendable {
    private let maximumAge: Duration

    /// - Parameter maximumAge: older requests are dropped; a notification that gorush did not take by then is given up.
    package init(maximumAge: Duration) {
        self.maximumAge = maximumAge
    }

    /// Until when notifications of this request may go out; nil when it is too old already. One without a timestamp is fresh.
    package func expiry(of timestamp: Timestamp, at now: Timestamp) -> Timestamp? {
        // A sender whose clock is ahead must not keep its request alive for longer.
        let sent = timestamp.rawValue == 0 ? now : min(timestamp, now)
        let expiry = sent + maximumAge
        return expiry < now ? nil : expiry
    }

    /// An outcome for each entry, in order.
    ///
    /// - Parameters:
    ///   - registration: what is stored for a key.
    ///   - delivery: what is known of a delivery.
    package func decide(
        _ request: PushNotificationRequest,
        registration: (RegistrationKey) throws -> StoredRegistration?,
        delivery: (DeliveryID) throws -> DeliveryState?
    ) rethrows -> [EntryOutcome] {
        // Devices that an entry before in this request notifies.
        var started: Set<DeliveryID> = []
        var outcomes: [EntryOutcome] = []
        for entry in request.requests {
            let outcome = try outcome(of: entry, messageID: request.messageID, started: started, registration, delivery)
            if case .deliver(let id, _, _) = outcome { started.insert(id) }
            outcomes.append(outcome)
        }
        return outcomes
    }

    private func outcome(
        of entry: PushNotification, messageID: [UInt8], started: Set<DeliveryID>,
        _ registration: (RegistrationKey) throws -> StoredRegistration?, _ delivery: (DeliveryID) throws -> DeliveryState?
    ) rethrows -> EntryOutcome {
        guard entry.kind != .unknown else { return .report(.unknown) }
        guard let keyHash = KeyHash(bytes: entry.publicKey) else { return .report(.notRegistered) }
        let key = RegistrationKey(keyHash: keyHash, installationID: entry.installationID)
        guard let stored = try registration(key) else { return .report(.notRegistered) }
        guard entry.accessToken == stored.registration.accessToken else { return .report(.wrongToken) }
        guard NotificationFilter.admits(entry, for: stored.registration) else { return .report(nil) }
        // Apple and Google would not take it: it must not hold up what is posted with it.
        guard !entry.isTooLarge else { return .report(.internalError) }
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
