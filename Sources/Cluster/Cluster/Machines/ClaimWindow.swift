/// Decides which messages can be claimed. Claims are in hourly partitions, which are dropped 2 h after their end: deleting millions of rows one by
/// one would cost more than inserting them.
///
/// The hour is that of the **message's own timestamp**, which is part of its hash: PostgreSQL requires the partition column in the unique key, so a
/// message must go to the same partition on every node at any time. (With the hour of the claim, a message received around the full hour could be
/// claimed twice.) A message without a timestamp is not claimed: ``Verdict/tooOld``.
///
/// A dropped partition must never come back, even if clocks are set: the first retained hour is stored, only increases, and is a condition of every
/// claim (`hour >= first_hour`). So a clock that is set back makes messages too old, but never lets one take effect twice.
package struct ClaimWindow: Hashable, Sendable {
    /// Hours since 1970, UTC.
    package typealias Hour = Int64

    package enum Verdict: Hashable, Sendable {
        /// Insert into this hour's partition, under the condition above.
        case claim(Hour)
        /// Handled without a claim: repetitions are recognised by stored registrations and deliveries. Deeper catch-up delivers registrations only.
        case tooOld
        /// Handled without a claim, as ``tooOld``: its hour has no partition yet.
        case fromTheFuture
    }

    /// The first hour whose claims are retained, as stored.
    package private(set) var firstHour: Hour
    /// The last hour that has a partition, as far as this node knows. It is behind if maintenance fails.
    package let lastHour: Hour

    package init(firstHour: Hour, lastHour: Hour = .max) {
        self.firstHour = firstHour
        self.lastHour = lastHour
    }

    /// Seconds that a partition covers.
    package static let hourLength: Int64 = 3600
    /// How long after its end a partition is kept, in seconds.
    package static let retention: Int64 = 7200
    /// The time by which partitions are created before their beginning, in seconds: no message waits for one, and senders' clocks may be fast.
    package static let lookAhead: Int64 = 3600

    /// The longest delay of maintenance, in seconds.
    package static let maintenanceDelay: Int64 = 900

    /// - Parameter timestamp: the message's timestamp, in seconds since 1970; nil for none. For a reassembled message, that of its earliest segment.
    package func verdict(timestamp: Int64?, now: Int64) -> Verdict {
        guard let timestamp, timestamp > now - Self.retention else { return .tooOld }
        let hour = Self.hour(of: timestamp)
        guard hour >= firstHour else { return .tooOld }
        return timestamp < now + Self.lookAhead && hour <= lastHour ? .claim(hour) : .fromTheFuture
    }

    /// The maintenance to do now: the hours whose partitions must exist, and the hour before which partitions are dropped. Store the new first hour
    /// in the transaction of the drop.
    package mutating func maintain(now: Int64) -> (create: ClosedRange<Hour>, dropBefore: Hour) {
        // Hours that ended `retention` ago, or later, are retained.
        firstHour = max(firstHour, Self.hour(of: now - Self.retention))
        return (firstHour...max(firstHour, Self.hour(of: now + Self.lookAhead + Self.maintenanceDelay)), firstHour)
    }

    /// The time until messages sent then can be claimed; nil if those of now can. Maintenance has run while the database's clock was far ahead.
    package func gap(now: Int64) -> Duration? {
        // A stored hour that was damaged may be any number.
        let gap = min(max(firstHour, 0), Self.hour(of: .max)) * Self.hourLength - now
        return gap > 0 ? .seconds(gap) : nil
    }

    package static func hour(of timestamp: Int64) -> Hour {
        timestamp >= 0 ? timestamp / hourLength : (timestamp - hourLength + 1) / hourLength
    }
}
