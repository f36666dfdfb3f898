/// Limits of a node by sender, by target and in total. nil disables a limit.
///
/// Messages over a rate are dropped and counted. All unsigned messages together have the limits of one sender. A notification over its
/// target's rate, a registration over a count, and a registration by a denied key are answered with INTERNAL_ERROR.
package struct Limits: Hashable, Sendable {
    /// All messages of a sender: the signer of the envelope, or of a segment. Checked before most of the processing.
    package var messagesBySender: RateLimit?
    package var registrationsBySender: RateLimit?
    package var queriesBySender: RateLimit?
    package var requestsBySender: RateLimit?
    /// Queries about one registrant.
    package var queriesByTarget: RateLimit?
    /// Notifications for one device.
    package var notificationsByTarget: RateLimit?
    /// Registrations of new installations, in total; divided by standing and device token.
    package var newRegistrations: RateLimit?
    package var registrations: RateLimit?
    package var queries: RateLimit?
    package var requests: RateLimit?
    /// KiB of rows about one registrant in answers to queries.
    package var answerKiBByTarget: RateLimit?
    /// KiB of answers to queries, in total; divided by standing and registrant.
    package var answerKiB: RateLimit?
    /// Answers about a registrant that are larger than its queries have paid for: see ``AnswerCredit``. nil also disables that payment.
    package var wholeAnswersByTarget: RateLimit?
    /// Notifications in total; divided by standing and owner.
    package var notifications: RateLimit?
    /// Registered installations of a key.
    package var installationsByKey: Int?
    /// Registered installations in total.
    package var registrationCount: Int?
    /// Registered Web Push devices whose endpoints are of one origin.
    package var webPushDevicesByOrigin: Int?
    /// MiB on disk of the store, of all protocols together.
    package var storeMiB: Int?
    /// The hashes of keys that may register; nil for all.
    package var allowed: Set<[UInt8]>?
    /// The hashes of keys that may not register, even if they are in ``allowed``.
    package var denied: Set<[UInt8]> = []

    package static let none = Limits()

    private init() {}

    /// The defaults, for a public node: far above normal use by clients, and far below rates that affect other senders.
    package static let standard: Limits = {
        var limits = Limits()
        limits.messagesBySender = RateLimit(50, per: .second, burst: 1_000)
        limits.registrationsBySender = RateLimit(2, per: .second, burst: 100)
        limits.queriesBySender = RateLimit(20, per: .second, burst: 500)
        limits.requestsBySender = RateLimit(20, per: .second, burst: 500)
        limits.queriesByTarget = RateLimit(100, per: .second, burst: 1_000)
        limits.notificationsByTarget = RateLimit(20, per: .second, burst: 500)
        limits.newRegistrations = .affordable(.openMessage, .registration)
        limits.answerKiBByTarget = RateLimit(1_024, per: .second, burst: 65_536)
        limits.answerKiB = RateLimit(4_096, per: .second, burst: 65_536)
        limits.wholeAnswersByTarget = RateLimit(6, per: .hour, burst: 1)
        limits.notifications = .affordable(.notification)
        limits.installationsByKey = 100
        limits.registrationCount = 10_000_000
        return limits
    }()

    /// The rates with their meanings, in the order in which they are shown.
    static let rates: [(limit: RateLimitTable.Refusal, path: any WritableKeyPath<Limits, RateLimit?> & Sendable, meaning: String)] = [
        (.messagesBySender, \.messagesBySender, "all messages of a key, segments included; checked before most of the processing"),
        (.registrationsBySender, \.registrationsBySender, "registrations and unregistrations of a key"),
        (.queriesBySender, \.queriesBySender, "queries of a key"),
        (.requestsBySender, \.requestsBySender, "notification requests of a key"),
        (
            .queriesByTarget, \.queriesByTarget,
            "queries about a registrant by all senders; above it, the registrant is left out of the answer"
        ),
        (
            .notificationsByTarget, \.notificationsByTarget,
            "notifications for a device by all senders, in Session by each storage server; above it, INTERNAL_ERROR"
        ),
        (
            .newRegistrations, \.newRegistrations,
            "registrations of new devices, in total, by standing and device token; above it, INTERNAL_ERROR. A record "
                + "of version 0.1 counts for each of its new devices"
        ),
        (.registrations, \.registrations, "registrations and unregistrations in total"),
        (.queries, \.queries, "queries in total"),
        (.requests, \.requests, "requests in total"),
        (
            .answerKiBByTarget, \.answerKiBByTarget,
            "KiB about a registrant in answers to all senders; above it, the registrant is left out of the answer"
        ),
        (.answerKiB, \.answerKiB, "KiB of answers to queries in total, by standing and registrant; above it, there is no answer"),
        (
            .wholeAnswersByTarget, \.wholeAnswersByTarget,
            "answers about a registrant that are over 50 times as large as the queries about it; above it, the registrant is left out of the answer"
        ),
        (.notifications, \.notifications, "notifications in total, by standing and owner; above it, INTERNAL_ERROR"),
    ]

    static let counts: [(limit: RateLimitTable.Refusal, path: any WritableKeyPath<Limits, Int?> & Sendable, meaning: String)] = [
        (.installationsByKey, \.installationsByKey, "registered devices of a key; above it, INTERNAL_ERROR"),
        (
            .registrationCount, \.registrationCount,
            "registered devices in total; above it, a new device displaces one that no one asked for, or INTERNAL_ERROR"
        ),
        (
            .webPushDevicesByOrigin, \.webPushDevicesByOrigin,
            "registered Web Push devices of one push service (origin of the endpoint); above it, INTERNAL_ERROR"
        ),
        (.storeMiB, \.storeMiB, "MiB of the database on disk, measured once a minute; above it, as for registration-count"),
    ]

    /// The limits of one of `nodeCount` nodes: rates are divided, unless they are lower than one per minute; counts apply to the shared database and
    /// stay whole.
    func share(among nodeCount: Int) -> Limits {
        var share = self
        for (_, path, _) in Self.rates { share[keyPath: path] = self[keyPath: path]?.share(among: nodeCount) }
        return share
    }

    /// Whether a key may register.
    package func allows(_ key: [UInt8]) -> Bool {
        !denied.contains(key) && allowed?.contains(key) ?? true
    }
}
