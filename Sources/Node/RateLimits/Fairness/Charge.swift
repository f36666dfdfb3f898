import Core

/// The payer of a piece of work, with its standing.
public struct Charge: Hashable, Sendable {
    package let payer: Payer
    package let standing: Standing

    package init(_ payer: Payer, _ standing: Standing) {
        self.payer = payer
        self.standing = standing
    }

    /// Work without a payer of its own: all of it together is charged to one stranger.
    package static let unattributed = Charge(Payer(.unsigned, hash: []), .stranger)
}
