package import Storage
import StorePostgreSQL

/// Logged notifications, which can be read later: see ``Notice/isLogged``.
package struct LoggedChanges: Hashable, Sendable {
    /// The payloads by channel, without duplicates.
    package var payloads: [String: [String]] = [:]
    /// The time of the read: microseconds since 1970 by the database's clock.
    package let readAt: Int64
    /// The place from which to continue reading; nil if all were read.
    package let next: Place?

    package struct Place: Hashable, Sendable {
        let channel: String
        let payload: String
    }

    package init(payloads: [String: [String]], readAt: Int64, next: Place?) {
        (self.payloads, self.readAt, self.next) = (payloads, readAt, next)
    }
}

extension ClusterDatabase {
    /// The default maximum number of changes in a read.
    package static let changeLimit = 100_000

    /// Reads logged changes.
    ///
    /// - Parameters:
    ///   - start: the earliest time, in microseconds since 1970 by the database's clock; nil reads all changes that are kept.
    ///   - place: ``LoggedChanges/next`` of the previous read; nil reads from the beginning.
    package func changes(
        since start: Int64?, after place: LoggedChanges.Place? = nil, limit: Int = changeLimit
    ) throws(StoreError) -> LoggedChanges {
        // The clock is read first, so that the next read includes changes that are logged after this one.
        let select = Statement(
            """
            SELECT DISTINCT channel, payload FROM cluster_change \
            WHERE at >= timestamptz 'epoch' + $1 * interval '1 microsecond' AND (channel, payload) > ($2, $3) \
            ORDER BY channel, payload LIMIT \(limit + 1)
            """, [.integer(start ?? 0), .text(place?.channel ?? ""), .text(place?.payload ?? "")])
        return try maintenance.read([Self.preciseClock, select]) { found in
            guard let time = found[0].first else { throw UnexpectedValue() }
            let places = try found[1].prefix(limit).map { LoggedChanges.Place(channel: try $0.text(0), payload: try $0.text(1)) }
            return LoggedChanges(
                payloads: Dictionary(grouping: places, by: \.channel).mapValues { $0.map(\.payload) }, readAt: try time.integer(0),
                next: found[1].count > limit ? places.last : nil)
        }
    }
}
