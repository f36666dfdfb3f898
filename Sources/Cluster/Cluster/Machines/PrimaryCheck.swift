/// Decides whether a connection leads to the primary. Called for each new connection, before any other statement, and again when a transaction fails
/// because the server is read-only.
///
///     SELECT pg_is_in_recovery(), system_identifier, timeline_id FROM pg_control_system(), pg_control_checkpoint();
///     the cluster's identity and the highest timeline that a node has stored, from the cluster's own table
///
/// A replaced primary has a lower timeline. A node that has seen the new one refuses the old one. A node that has not can still do no harm: its
/// commits on the old primary wait for the synchronous standby, which has left, and are never acknowledged; so its lease lapses, and it neither posts
/// nor acknowledges anything.
package struct PrimaryCheck: Hashable, Sendable {
    package struct Server: Hashable, Sendable {
        package let isInRecovery: Bool
        package let systemIdentifier: UInt64
        package let timeline: UInt32
        /// `SHOW synchronous_commit`.
        package let synchronousCommit: String
    }

    package enum Refusal: Hashable, Sendable, CustomStringConvertible {
        case standby
        case oldPrimary(timeline: UInt32, known: UInt32)
        case otherDatabase
        case commitsAreNotSynced(String)

        package var description: String {
            switch self {
            case .standby: "the server is a standby: name the primary, or all servers and target_session_attrs=read-write"
            case .oldPrimary(let timeline, let known):
                "the server is on timeline \(timeline), and timeline \(known) exists: it was replaced by a promoted standby; stop it"
            case .otherDatabase: "the server belongs to another PostgreSQL cluster (system identifier differs)"
            case .commitsAreNotSynced(let value): "synchronous_commit is \(value): set it to on, or what was acknowledged can be lost"
            }
        }
    }

    /// The highest timeline seen. The driver also stores it in the cluster's table when it increases.
    package private(set) var timeline: UInt32 = 0
    package private(set) var systemIdentifier: UInt64?

    /// - Returns: nil when the server is the primary.
    package mutating func check(_ server: Server) -> Refusal? {
        if let systemIdentifier, systemIdentifier != server.systemIdentifier { return .otherDatabase }
        if server.isInRecovery { return .standby }
        if server.timeline < timeline { return .oldPrimary(timeline: server.timeline, known: timeline) }
        guard ["on", "remote_apply"].contains(server.synchronousCommit) else { return .commitsAreNotSynced(server.synchronousCommit) }
        timeline = server.timeline
        systemIdentifier = server.systemIdentifier
        return nil
    }
}
