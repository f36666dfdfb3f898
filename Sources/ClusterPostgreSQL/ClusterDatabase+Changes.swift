package import Storage
import StorePostgreSQL

/// What was notified of, and can be read afterwards: see ``Notice/isLogged``.
package struct LoggedChanges: Hashable, Sendable {
    /// By channel, each once.
    package var payloads: [String: [String]] = [:]
    /// When they were read: microseconds since 1970 by the database's clock.
    package let readAt: Int64
    /// Whether there are no more than these.
    package let isComplete: Bool
}

extension ClusterDatabase {
    /// Changes that are read at once, at most.
    package static let changeLimit = 100_000

    /// - Parameter start: microseconds since 1970 by the database's clock; nil: all that are kept.
    /// - Throws: `StoreError`
    package func changes(since start: Int64?) throws(StoreError) -> LoggedChanges {
        // The clock comes first: what is logged later is read the next time.
        let clock = Statement("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        let select = Statement(
            """
            SELECT DISTINCT channel, payload FROM cluster_change \
            WHERE at >= timestamptz 'epoch' + $1 * interval '1 microsecond' LIMIT \(Self.changeLimit + 1)
            """, [.integer(start ?? 0)])
        return try maintenance.read([clock, select]) { found in
            guard let time = found[0].first else { throw UnexpectedValue() }
            var changes = LoggedChanges(readAt: try time.integer(0), isComplete: found[1].count <= Self.changeLimit)
            for row in found[1].prefix(Self.changeLimit) { changes.payloads[try row.text(0), default: []].append(try row.text(1)) }
            return changes
        }
    }
}
