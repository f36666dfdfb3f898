package import NodeMetrics
package import NodeAPI
import StatusProtocol
package import RateLimits
import StatusRules
import Core
import WakuCrypto

/// The rate limits of version 0.1.
package final class V01Limits: ProtocolRateLimits {
    package let limiter: RateLimits
    package var label: ProtocolLabel { .statusV01 }
    package var hasher: PayerHasher { standings.hasher }
    package static let counters: LimitCounters? = .statusV01
    /// The standing of device tokens, and of registrants.
    let standings: Standings<V01.KeyHash>

    /// - Parameters:
    ///   - limits: the limits of all nodes together.
    ///   - payers: equal at all nodes of an identity.
    package init(_ limits: Limits, payers: PayerHasher = PayerHasher(key: .random())) {
        limiter = RateLimits(limits)
        standings = Standings(hasher: payers)
    }

    /// The payer of work about a registrant.
    func charge(of registrant: V01.KeyHash, at now: Timestamp) -> Charge {
        standings.charge(registrant, registrant.bytes, at: now)
    }

    /// Records that gorush accepted a notification for a device.
    func accepted(_ token: Payer, of registrant: V01.KeyHash, at now: Timestamp) {
        standings.accepted(token, for: [registrant], at: now)
    }

    /// Whether limits refuse to read the record of a registrant, by its stored size in bytes.
    func refusesReading(_ byteCount: Int, about registrant: V01.KeyHash, on bill: inout ReadingBill, at now: Timestamp) -> Bool {
        refusesReading(byteCount, on: &bill, at: now) { charge(of: registrant, at: now) }
    }

    /// Whether limits refuse a record. If not, its new devices are counted.
    ///
    /// - Parameters:
    ///   - devices: Number of devices in the record.
    ///   - stored: Number of devices of the account; nil if it is not registered now.
    func refusesRecord(_ claim: V01.RegisterClaim, devices: Int, stored: Int?, at now: Timestamp) -> Bool {
        guard !limiter.isUnlimited else { return false }
        let limits = limiter.limits
        guard limits.allows(KeyHash(of: claim.sender)) else { return refuses { _ in .denied } }
        if let limit = limits.installationsByKey, devices > limit { return refuses { _ in .installationsByKey } }
        let added = max(0, devices - (stored ?? 0))
        guard stored == nil || added > 0 else { return false }
        let id = ChargeID(claim.keyHash.bytes + claim.requestID, at: now)
        return limiter.refusesNew(id, devices: added, by: charge(of: claim.keyHash, at: now), at: now)
    }

    /// Whether limits refuse an answer with the stored record, which counts as an answer to a query about the account.
    ///
    /// - Parameters:
    ///   - byteCount: size of the answer.
    ///   - claim: the outdated registration.
    ///   - questionByteCount: size of its message.
    func refusesRecord(of byteCount: Int, to claim: V01.RegisterClaim, _ questionByteCount: Int, at now: Timestamp) -> Bool {
        let account = claim.keyHash
        let charge = charge(of: account, at: now)
        return refuses(for: charge) {
            $0.answer(byteCount: byteCount, about: account.bytes, queryByteCount: questionByteCount, charge.standing, at: now)
                ?? $0.answer(byteCount: byteCount, for: charge, at: now)
        }
    }
}
