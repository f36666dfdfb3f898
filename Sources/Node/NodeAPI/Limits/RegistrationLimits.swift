import Core
import Delivery
package import NodeMetrics
package import RateLimits
import WakuCrypto

/// The limits of a protocol whose devices are in a ``RegistrationTable``, under the names of ``RegistrationLimit``. Thread-safe.
///
/// Owners are keys, and keys cost nothing: an owner is known from the first notification that gorush accepted for its device, and a stranger until then.
package final class RegistrationLimits: ProtocolRateLimits {
    package let limiter: RateLimits
    package let label: ProtocolLabel
    package let hasher: PayerHasher

    /// - Parameters:
    ///   - limits: the limits of all nodes together.
    ///   - payers: equal at all nodes of an identity.
    package init(_ limits: Limits, of label: ProtocolLabel, payers: PayerHasher) {
        limiter = RateLimits(limits)
        self.label = label
        hasher = payers
    }

    /// Admits a registration of any kind.
    ///
    /// - Parameter digest: the hash that the owner signed.
    func admit(registrationBy owner: PublicKey, digest: [UInt8], isRetry: Bool, at now: Timestamp) throws(Drop) {
        let content = SignedContent(digest, by: owner)
        try admit(isRetry: isRetry) {
            let isRepetition = $0.isRepetition(of: content)
            return $0.message(from: owner, isRepetition: isRepetition, at: now)
                ?? $0.message(.registration, from: owner, isRepetition: isRepetition, at: now)
        }
    }

    /// Whether the owner is not allowed to register. Counts that as a refusal.
    func denies(_ owner: PublicKey) -> Bool {
        !limiter.limits.allows(Shake256.hash64(owner.compressed)) && refuses { _ in .denied }
    }

    /// Whether limits refuse a new owner. If not, it is counted.
    ///
    /// - Parameters:
    ///   - id: the registration.
    ///   - token: the device token, which pays; the owner if there is none.
    ///   - isReplacement: whether the row of another owner is deleted to make room.
    func refusesNew(_ owner: PublicKey, _ id: ChargeID, token: [UInt8]?, isReplacement: Bool, at now: Timestamp) -> Bool {
        let payer = token.map { hasher.payer(.deviceToken, $0) } ?? hasher.payer(.key, owner.compressed)
        return limiter.refusesNew(id, displaced: isReplacement ? 1 : 0, by: Charge(payer, .stranger), at: now)
    }

    /// Counts the row that was deleted to make room, or the owner that got none.
    func displaced() {
        limiter.displaced(limiter.exhausted() ?? .registrationCount, .stranger)
    }

    /// Whether limits refuse a notification.
    ///
    /// - Parameters:
    ///   - owner: the compressed key.
    ///   - isKnown: whether gorush has accepted a notification for the device.
    func refuses(_ delivery: DeliveryID, to owner: [UInt8], isKnown: Bool, at now: Timestamp) -> Bool {
        guard !limiter.isUnlimited else { return false }
        let charge = Charge(hasher.payer(.owner, owner), isKnown ? .known : .stranger)
        return refuses(once: ChargeID(delivery), for: charge) { $0.notification(for: owner, by: charge, at: now) }
    }
}
