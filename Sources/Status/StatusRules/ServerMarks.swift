package import StatusProtocol
package import WakuCrypto

/// The marks of identities.
package struct ServerMarks: Sendable {
    /// The identities that the database has served, the first without a mark; empty if there was one only.
    package let known: [PublicKey]
    private let first: PublicKey

    /// - Parameter identity: the identity to which the database belongs.
    package init(known: [PublicKey], identity: PublicKey) {
        self.known = known
        first = known.first ?? identity
    }

    /// nil if the database has not served such an identity beside others.
    package func identity(with mark: ServerMark?) -> PublicKey? { known.first { self.mark(of: $0) == mark } }

    package func mark(of identity: PublicKey) -> ServerMark? { identity == first ? nil : ServerMark(of: identity) }
}
