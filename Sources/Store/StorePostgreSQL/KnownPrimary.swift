import Synchronization

/// The servers of one address, shared by all connections of this process: a connection to a former primary, which may go on answering, is left as
/// soon as another connection has reached the promoted server.
final class KnownPrimary: Sendable {
    private static let all = Mutex<[String: KnownPrimary]>([:])

    private let newest = Atomic<UInt32>(0)
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

    /// The highest timeline of a server that was used: see ``PostgreSQLConnection/timeline``.
    var timeline: UInt32 { newest.load(ordering: .acquiring) }

    /// The host that was used last: after a failover, new connections need not wait for the former primary.
    var host: PostgreSQLHost? { last.withLock { $0 } }

    /// The number of connections made so far. One more shows that a server can be reached.
    var connectionCount: Int { connections.load(ordering: .acquiring) }

    func note(_ host: PostgreSQLHost, timeline: UInt32) {
        newest.max(timeline, ordering: .acquiringAndReleasing)
        last.withLock { $0 = host }
        connections.add(1, ordering: .acquiringAndReleasing)
    }
}
