package import NodeMetrics

/// The result of a message's effect, which another node may have committed before.
package enum Claimed<Outcome: Sendable>: Sendable {
    case here(Outcome)
    /// Nothing was changed, or the message is too old for claims: no other node takes over its answer.
    case unclaimed(Outcome)
    /// Another node had already claimed the message; nothing was changed.
    case elsewhere(KindLabel)

    package var outcome: Outcome? {
        switch self {
        case .here(let outcome), .unclaimed(let outcome): outcome
        case .elsewhere: nil
        }
    }
}
