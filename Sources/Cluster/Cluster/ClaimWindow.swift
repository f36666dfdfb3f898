/// Which messages can be claimed. Claims lie in partitions of an hour, which are dropped as a whole 2 h later: deleting millions of rows one by
/// one would cost more than inserting them.
///
/// The hour is that of the **message's own timestamp**, which is part of its hash: PostgreSQL needs the partition in the unique key, and so the
/// same message must come to the same partition on every node, at every time. (By the hour in which they are claimed, a message that is heard
/// around the full hour could be claimed twice.) A message without timestamp is not claimed: ``Verdict/tooOld``.
///
/// A partition that was dropped must not come back, whatever clocks do: the first hour that is kept is stored, only increases, and is a condition
/// of every claim (`hour >= first_hour`). So a clock that is set back makes messages too old, and never lets one take effect twice.
package struct ClaimWindow: Hashable, Sendable {
    /// Hours since 1970, UTC.
    package typealias Hour = Int64

    package enum Verdict: Hashable, Sendable {
        /// Insert into this hour's partition, under the condition above. No such partition: handle as ``tooOld``.
        case claim(Hour)
        /// Refused; a registration is decided by the mark in the registrant's own row: the hash of the message that it was stored with, and
        /// its version. Deeper catch-up hands in registrations only.
        case tooOld
        /// Refused: its hour has no partition yet.
        case fromTheFuture
    }

    /// The first hour whose claims are kept, as it is stored.
    package private(set) var firstHour: Hour

    package init(firstHour: Hour) {
        self.firstHour = firstHour
    }

    /// Seconds that a partition covers.
    package static let hourLength: Int64 = 3600
    /// How long after its end a partition is kept, in seconds.
    package static let retention: Int64 = 7200
    /// Partitions are created so long before their beginning, in seconds: no message waits for one, and senders' clocks may be ahead.
    package static let lookAhead: Int64 = 3600

    /// Maintenance may come so much later than it should, in seconds.
    package static let maintenanceDelay: Int64 = 900

    /// - Parameters:
    ///   - timestamp: of the message, in seconds since 1970; nil for none. Of a whole: of its earliest segment.
    ///   - now: by the database's clock, in the same unit.
    package func verdict(timestamp: Int64?, now: Int64) -> Verdict {
        guard let timestamp, timestamp > now - Self.retention else { return .tooOld }
        let hour = Self.hour(of: timestamp)
        guard hour >= firstHour else { return .tooOld }
        return timestamp < now + Self.lookAhead ? .claim(hour) : .fromTheFuture
    }

    /// What maintenance does now: hours whose partitions must exist, and the hour before which they are dropped. Store the new first hour in
    /// one transaction with the drop.
    package mutating func maintain(now: Int64) -> (create: ClosedRange<Hour>, dropBefore: Hour) {
        // The hour that ended `retention` ago, or later, stays.
        firstHour = max(firstHour, Self.hour(of: now - Self.retention))
        return (firstHour...max(firstHour, Self.hour(of: now + Self.lookAhead + Self.maintenanceDelay)), firstHour)
    }

    package static func hour(of timestamp: Int64) -> Hour {
        timestamp >= 0 ? timestamp / hourLength : (timestamp - hourLength + 1) / hourLength
    }
}
