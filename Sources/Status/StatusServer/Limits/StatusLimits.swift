package import NodeMetrics
package import NodeAPI
import StatusProtocol
package import RateLimits
import StatusRules
import Core
import Waku
import WakuCrypto

/// The rate limits of the Status protocol.
package final class StatusLimits: ProtocolRateLimits {
    package let limiter: RateLimits
    package var label: ProtocolLabel { .status }
    package var hasher: PayerHasher { standings.hasher }
    package static let counters: LimitCounters? = .status
    /// The standing of device tokens, and of the topics of registrants.
    let standings: Standings<TopicTag>

    /// - Parameters:
    ///   - limits: the limits of all nodes together.
    ///   - payers: equal at all nodes of an identity.
    package init(_ limits: Limits, payers: PayerHasher = PayerHasher(key: .random())) {
        limiter = RateLimits(limits)
        standings = Standings(hasher: payers)
    }

    /// The payer of work about the registrants of a topic.
    func charge(of tag: TopicTag, at now: Timestamp) -> Charge {
        standings.charge(tag, withUnsafeBytes(of: tag.rawValue.bigEndian, Array.init), at: now)
    }

    /// The payer of work for a registration: its device token.
    func charge(of registration: PushNotificationRegistration, at now: Timestamp) -> Charge {
        standings.charge(token: registration.deviceToken.bytes, at: now)
    }

    /// Records that gorush accepted a notification for a device.
    func accepted(_ token: Payer, of registrant: KeyHash, at now: Timestamp) {
        let topics = QueryTopics(of: registrant)
        standings.accepted(token, for: [topics.deployed, topics.published], at: now)
    }

    /// Whether limits refuse to read registrations of a registrant, by their stored size in bytes.
    func refusesReading(_ byteCount: Int, about registrant: KeyHash, on bill: inout ReadingBill, at now: Timestamp) -> Bool {
        refusesReading(byteCount, on: &bill, at: now) { charge(of: QueryTopics(of: registrant).deployed, at: now) }
    }

    /// The registrants of a long query, known ones first: a refusal ends the reading.
    func readingOrder(_ registrants: [KeyHash], at now: Timestamp) -> [KeyHash] {
        guard registrants.count > Registrations.registrantChunk, !limiter.isUnlimited else { return registrants }
        let standings = registrants.map { charge(of: QueryTopics(of: $0).deployed, at: now).standing }
        return Standing.allCases.reversed().flatMap { standing in
            zip(registrants, standings).filter { $1 == standing }.map(\.0)
        }
    }

    /// Whether limits refuse a registration. If not, a new installation is counted.
    ///
    /// - Parameters:
    ///   - id: the message.
    ///   - isNew: whether the installation is not registered now.
    ///   - installations: number of registered installations of this key; 0 if it is not limited.
    ///   - displaced: number of installations that make room for it.
    ///   - charge: the payer of a new installation.
    func refusesRegistration(
        _ id: ChargeID, of key: KeyHash, isNew: Bool, installations: Int, displaced: Int = 0, by charge: Charge, at now: Timestamp
    ) -> Bool {
        guard limiter.limits.allows(key) else { return refuses { _ in .denied } }
        return isNew && limiter.refusesNew(id, installations: installations, displaced: displaced, by: charge, at: now)
    }

    /// Records that a registration made room for another.
    func displaced(_ registrant: KeyHash, at now: Timestamp) {
        limiter.displaced(
            limiter.exhausted() ?? .registrationCount, charge(of: QueryTopics(of: registrant).deployed, at: now).standing)
    }
}
