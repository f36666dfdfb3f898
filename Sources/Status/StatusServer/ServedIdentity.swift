package import StatusProtocol
import StatusRules
package import WakuCrypto

/// One of the node's identities, with everything that depends on it. All share topics of registrants, limits and the store.
struct ServedIdentity: Sendable {
    /// nil for the identity that the database served first.
    let mark: ServerMark?
    let decoder: StatusDecoder
    let registration: RegistrationHandler
    let request: RequestHandler
    let queries: QueryRules
    let replies: StatusReplies
}

/// A command with the identity that it was sent to, by its index. A query is sent to all.
struct AddressedCommand: Sendable {
    let command: StatusCommand
    let server: Int
}

/// The marks of identities.
package struct ServerMarks: Sendable {
    /// The identities that the database has served, the first without a mark; empty if there was one only.
    let known: [PublicKey]
    private let first: PublicKey

    /// - Parameters:
    ///   - known: from the store.
    ///   - identity: the identity to which the database belongs.
    package init(known: [PublicKey], identity: PublicKey) {
        self.known = known
        first = known.first ?? identity
    }

    /// nil if the database has not served such an identity beside others.
    package func identity(with mark: ServerMark?) -> PublicKey? { known.first { self.mark(of: $0) == mark } }

    package func mark(of identity: PublicKey) -> ServerMark? { identity == first ? nil : ServerMark(of: identity) }
}
