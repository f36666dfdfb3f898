package import StatusProtocol

/// How much is asked of the node, by whom and about whom. nil is no limit.
///
/// What exceeds a rate is dropped and counted; a notification beyond its target's is answered INTERNAL_ERROR, as is a registration beyond a
/// count or by a key that is not welcome.
package struct Limits: Hashable, Sendable {
    /// Signed by a key, whatever they are: known before most of the work is done.
    package var messagesBySender: RateLimit?
    package var registrationsBySender: RateLimit?
    package var queriesBySender: RateLimit?
    package var requestsBySender: RateLimit?
    /// About one registrant.
    package var queriesByTarget: RateLimit?
    /// Notifications for one device.
    package var notificationsByTarget: RateLimit?
    /// Of installations that were not registered before, by all together.
    package var newRegistrations: RateLimit?
    package var registrations: RateLimit?
    package var queries: RateLimit?
    package var requests: RateLimit?
    /// Of rows about one registrant in answers to queries, in KiB.
    package var answerKiBByTarget: RateLimit?
    /// Of answers to queries by all together, in KiB.
    package var answerKiB: RateLimit?
    /// In force at once, of one key.
    package var installationsByKey: Int?
    /// In force at once, of all.
    package var registrationCount: Int?
    /// Who may register; nil is everybody.
    package var allowed: Set<KeyHash>?
    /// Who may not, whoever may.
    package var denied: Set<KeyHash> = []

    package static let none = Limits()

    private init() {}

    /// For a node that anybody may use: far above what clients do, and far below what hurts others.
    package static let standard: Limits = {
        var limits = Limits()
        limits.messagesBySender = RateLimit(50, per: .second, burst: 1_000)
        limits.registrationsBySender = RateLimit(2, per: .second, burst: 100)
        limits.queriesBySender = RateLimit(20, per: .second, burst: 500)
        limits.requestsBySender = RateLimit(20, per: .second, burst: 500)
        limits.queriesByTarget = RateLimit(100, per: .second, burst: 1_000)
        limits.notificationsByTarget = RateLimit(20, per: .second, burst: 500)
        limits.newRegistrations = RateLimit(200, per: .second, burst: 10_000)
        limits.answerKiBByTarget = RateLimit(1_024, per: .second, burst: 65_536)
        limits.answerKiB = RateLimit(16_384, per: .second, burst: 262_144)
        limits.installationsByKey = 100
        return limits
    }()

    package func allows(_ key: KeyHash) -> Bool {
        !denied.contains(key) && allowed?.contains(key) ?? true
    }
}
