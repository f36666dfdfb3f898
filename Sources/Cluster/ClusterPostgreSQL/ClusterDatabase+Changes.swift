package import Storage
import StorePostgreSQL

/// What was notified of, and can be read afterwards: see ``Notice/isLogged``.
package struct LoggedChanges: Hashable, Sendable {
    /// By channel, each once.
    package var payloads: [String: [String]] = [:]
    /// When they were read: microseconds since 1970 by the database's clock.
    package let readAt: Int64
    /// After which more follow; nil when there are no more than these.
    package let next: Place?

    package struct Place: Hashable, Sendable {
        let channel: String
        let payload: String
    }
}

extension ClusterDatabase {
    /// Changes that are read at once, at most.
    package static let changeLimit = 100_000

    /// - Parameters:
    ///   - start: microseconds since 1970 by the database's clock; nil: all that are kept.
    ///   - place: ``LoggedChanges/next`` of those that were read before; nil: from the beginning.
    ///   - limit: how many are read at most.
    /// - Throws: `StoreError`
    package func changes(
        since start: Int64?, after place: LoggedChanges.Place? = nil, limit: Int = changeLimit
    ) throws(StoreError) -> LoggedChanges {
        // The clock comes first: what is logged later is read the next time.
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
