/// Decides whether a connection leads to the current primary. Called for each new connection, before any other statement. Opening the connection has
/// already refused standbys, and servers that do not sync commits.
///
/// A replaced primary has a lower timeline. A node that has seen the new one refuses the old one. A node that has not can still do no harm: its
/// commits on the old primary wait for the synchronous standby, which has left, and are never acknowledged; so its lease lapses, and it neither posts
/// nor acknowledges anything.
package struct PrimaryCheck: Hashable, Sendable {
    package enum Refusal: Hashable, Sendable, CustomStringConvertible {
        case oldPrimary(timeline: UInt32, known: UInt32)
        case otherDatabase

        package var description: String {
            switch self {
            case .oldPrimary(let timeline, let known):
                "the server is on timeline \(timeline), and timeline \(known) exists: it was replaced by a promoted standby; stop it"
            case .otherDatabase:
                "the server belongs to another PostgreSQL cluster (system identifier differs): restart the node if the database was moved to it"
            }
        }
    }

    /// The highest timeline seen. It is not stored: the data of a server are never from a later timeline than its own, unless they were copied from
    /// a server of another cluster, which has timelines of its own.
    package private(set) var timeline: UInt32 = 0
    package private(set) var systemIdentifier: UInt64?

    /// - Returns: nil when the server is the primary.
    package mutating func check(systemIdentifier: UInt64, timeline: UInt32) -> Refusal? {
        if let known = self.systemIdentifier, known != systemIdentifier { return .otherDatabase }
        if timeline < self.timeline { return .oldPrimary(timeline: timeline, known: self.timeline) }
        (self.systemIdentifier, self.timeline) = (systemIdentifier, timeline)
        return nil
    }
}
