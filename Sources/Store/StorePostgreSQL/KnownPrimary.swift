import Synchronization

/// The servers of one address, shared by all connections of this process: a connection to a former primary, which may go on answering, is left as
/// soon as another connection has reached the promoted server.
final class KnownPrimary: Sendable {
    private static let all = Mutex<[String: KnownPrimary]>([:])

    /// The highest timeline of the servers that were used, by system identifier.
    private let newest = Mutex<[UInt64?: UInt32]>([:])
    private let connections = Atomic<Int>(0)
    private let last = Mutex<PostgreSQLHost?>(nil)

    /// - Parameter connectionString: ``PostgreSQLAddress/connectionString``.
    static func of(_ connectionString: String) -> KnownPrimary {
        all.withLock { all in
            if let known = all[connectionString] { return known }
            let new = KnownPrimary()
            all[connectionString] = new
            return new
        }
    }

    /// The highest timeline of the servers of one cluster that were used; 0 if there were none. Timelines of other clusters say nothing about it: a
    /// database that was restored to a new server begins with the first one.
    ///
    /// - Parameter cluster: ``PostgreSQLConnection/systemIdentifier``.
    func timeline(of cluster: UInt64?) -> UInt32 { newest.withLock { $0[cluster] ?? 0 } }

    /// The host that was used last: after a failover, new connections need not wait for the former primary.
    var host: PostgreSQLHost? { last.withLock { $0 } }

    /// The number of connections made so far. One more shows that a server can be reached.
    var connectionCount: Int { connections.load(ordering: .acquiring) }

    func note(_ host: PostgreSQLHost, _ connection: PostgreSQLConnection) {
        let (cluster, timeline) = (connection.systemIdentifier, connection.timeline)
        newest.withLock { $0[cluster] = max($0[cluster] ?? 0, timeline) }
        last.withLock { $0 = host }
        connections.add(1, ordering: .acquiringAndReleasing)
    }
}
