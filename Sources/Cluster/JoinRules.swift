/// Whether a node may use a database: the same identity, and a schema that both know.
///
/// Migrations only add while nodes of the previous release run. `admin migrate --finish` removes what only older releases need, and raises
/// ``Database/compatibleFrom``. So two releases at once are an everyday upgrade: a node joins a schema that is newer than its own as long as it is
/// compatible.
package enum JoinRules {
    package struct Database: Hashable, Sendable {
        /// The hash of the identity's public key; nil in a new database.
        package var identity: [UInt8]?
        /// The number of the last migration.
        package var schema: Int
        /// The lowest release's schema that can use it.
        package var compatibleFrom: Int

        package init(identity: [UInt8]?, schema: Int, compatibleFrom: Int) {
            self.identity = identity
            self.schema = schema
            self.compatibleFrom = compatibleFrom
        }
    }

    package enum Verdict: Hashable, Sendable {
        case join
        /// Run the migrations up to this release's, under a lock, then join.
        case migrate
        case refuse(Refusal)
    }

    package enum Refusal: Hashable, Sendable, CustomStringConvertible {
        case otherIdentity
        case tooOld(own: Int, compatibleFrom: Int)

        package var description: String {
            switch self {
            case .otherIdentity: "the database belongs to a node with another identity: use its identity file, or another database"
            case .tooOld(let own, let compatibleFrom):
                "the database needs schema \(compatibleFrom) or later, this version has \(own): install a newer version"
            }
        }
    }

    /// - Parameters:
    ///   - identity: the hash of this node's public key.
    ///   - schema: the number of the last migration that this release has.
    package static func verdict(on database: Database, identity: [UInt8], schema: Int) -> Verdict {
        if let stored = database.identity, stored != identity { return .refuse(.otherIdentity) }
        if schema < database.compatibleFrom { return .refuse(.tooOld(own: schema, compatibleFrom: database.compatibleFrom)) }
        return schema > database.schema ? .migrate : .join
    }
}
