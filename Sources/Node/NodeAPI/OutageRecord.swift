package import Core
package import Storage

/// The times in which no node was alive: none ran, or none could write to the store. The time since a backup counts, too, once it is restored, since it
/// lacks later renewals. Clients could not renew their registrations, so these times do not count towards a registration's lifetime.
package struct OutageRecord: Hashable, Sendable {
    private struct Outage: Hashable {
        let end: Timestamp
        let duration: Duration
    }

    private static let property = "alive at"
    /// Clients renew their registrations long before a lifetime ends, and try again after a shorter outage.
    private static let minimum = Duration.seconds(86_400)
    private static let countLimit = 64

    /// The last time at which a node was alive; nil before the first.
    private var aliveAt: Timestamp?
    /// Oldest first.
    private var outages: [Outage] = []

    package init() {}

    // MARK: Stored

    package static func stored() -> StoreCommand<OutageRecord> {
        Properties.property(property).map { OutageRecord(bytes: $0 ?? []) }
    }

    /// Records that a node is alive. Each node of a cluster does.
    package static func recordAlive(at now: Timestamp) -> StoreCommand<Void> {
        stored().then { stored in
            var record = stored
            record.noteAlive(at: now)
            return .change([Properties.set(property, to: record.bytes)])
        }
    }

    /// ``aliveAt``, which earlier releases store alone; then the ends and durations of the outages, in 8 bytes each.
    private var bytes: [UInt8] {
        let times = [aliveAt].compactMap(\.self) + outages.flatMap { [$0.end, Timestamp(rawValue: $0.duration.nanoseconds)] }
        return times.flatMap(\.bytes)
    }

    private init(bytes: [UInt8]) {
        let times = bytes.chunks(of: 8).compactMap { Timestamp(bytes: Array($0)) }
        aliveAt = times.first
        outages = times.dropFirst().chunks(of: 2).filter { $0.count == 2 }.map { pair in
            Outage(end: pair[pair.startIndex], duration: .nanoseconds(pair[pair.startIndex + 1].rawValue))
        }
    }

    // MARK: Decisions

    package mutating func noteAlive(at now: Timestamp) {
        let silence = aliveAt.map { now.since($0) } ?? .zero
        if silence > Self.minimum {
            outages = Array((outages + [Outage(end: now, duration: silence)]).suffix(Self.countLimit))
        } else if silence < .zero - Self.minimum {
            // The clock was ahead, and steps forward look like outages.
            outages.removeAll { $0.end > now }
        }
        aliveAt = now
    }

    /// The time before which registrations must have been renewed last for their lifetime to be over.
    package func cutoff(lifetime: Duration, at now: Timestamp) -> Timestamp {
        outages.reversed().reduce(now - lifetime) { cutoff, outage in
            cutoff < outage.end && outage.end <= now ? cutoff - outage.duration : cutoff
        }
    }
}
