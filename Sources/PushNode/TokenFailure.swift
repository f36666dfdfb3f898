import Gorush
import PushServer
import PushStore
import StatusProtocol
import Waku
import WakuCrypto

/// A token that a notification did not reach, and whose it is.
struct TokenFailure: Sendable {
    let posted: PostedNotification
    let key: RegistrationKey
    let audience: FailureGuard.Audience
    let reason: FailureReason

    /// - Parameter entry: what was posted.
    init(_ entry: OutboxEntry, _ reason: FailureReason) {
        posted = PostedNotification(delivery: entry.delivery, registration: entry.registration, version: entry.version)
        key = entry.key
        audience = entry.audience
        self.reason = reason
    }

    /// - Parameter token: of the device as it is registered now.
    init(_ posted: PostedNotification, _ token: RegisteredToken, _ failure: GorushFailure) {
        self.posted = posted
        key = token.key
        audience = FailureGuard.Audience(platform: token.platform, topic: token.apnTopic)
        reason = FailureReason(platform: token.platform, error: failure.error)
    }

    enum Effect: Sendable {
        case repeated
        case stale
        case doubted
        case removed
        case disabled
    }

    /// Carries out what the rules say of it. Needs nothing to be opened, so that it can't fail for what a row holds.
    func takeEffect(in transaction: StoreTransaction, at now: Timestamp) throws -> Effect {
        guard try transaction.noteFailure(of: posted.delivery) else { return .repeated }
        let complaint: VerdictRules.Complaint = reason.verdict == .dead ? .dead : .doubtful
        let head = try transaction.head(of: key)
        let decision = VerdictRules.decide(
            complaint, storedVersion: head?.isRegistered == true ? head?.version : nil, notifiedVersion: posted.version,
            doubt: try transaction.doubt(of: posted.registration), at: now)
        switch decision {
        case .ignore:
            return .stale
        case .unregister:
            try transaction.unregister(key, version: posted.version, at: now)
            try transaction.setDoubt(nil, of: posted.registration)
            return complaint == .dead ? .removed : .disabled
        case .doubt(let doubt):
            try transaction.setDoubt(doubt, of: posted.registration)
            return .doubted
        }
    }
}

extension OutboxEntry {
    var audience: FailureGuard.Audience { FailureGuard.Audience(platform: platform, topic: apnTopic) }
}

extension StoreTransaction {
    /// gorush accepted a notification for a device whose token may be in doubt.
    func noteAcceptance(by registration: Int64, version: UInt64, at now: Timestamp) throws {
        guard var doubt = try doubt(of: registration) else { return }
        let isOver = doubt.version != version || doubt.accepted(at: now)
        try setDoubt(isOver ? nil : doubt, of: registration)
    }
}

extension DeliveryID {
    private static let namedByteCount = 16

    /// Unique among all that this gorush ever gets: derived from what is delivered to whom.
    var notificationID: String { String(hex.prefix(2 * Self.namedByteCount)) }

    /// The beginning of the delivery that a notification was named after; nil when it is none of this server's.
    static func prefix(of notificationID: String) -> [UInt8]? {
        guard let prefix = WakuCrypto.bytes(hex: notificationID), prefix.count == namedByteCount else { return nil }
        return prefix
    }
}
