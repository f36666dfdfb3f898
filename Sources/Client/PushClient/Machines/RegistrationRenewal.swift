import Core

/// When an accepted registration is sent again as a new version: servers may end registrations that were not renewed for a time of their choice.
enum RegistrationRenewal {
    static let period = Duration.seconds(30 * 24 * 3600)
    /// The period is shorter by up to this, at random, so that the clients that registered at one time do not all renew at one time.
    static let periodJitter = Duration.seconds(3 * 24 * 3600)

    static func time(afterAcceptanceAt now: Timestamp, jitter: Double) -> StoredTime {
        StoredTime(now + (period - periodJitter * min(max(jitter, 0), 1)))
    }

    /// For registrations that an earlier version of the client left without a time: at random within the period.
    static func time(ofUnknownAgeAt now: Timestamp, jitter: Double) -> StoredTime {
        StoredTime(now + period * min(max(jitter, 0), 1))
    }
}
