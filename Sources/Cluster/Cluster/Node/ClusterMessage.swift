import Core
import NodeAPI

/// A message whose outcome this node does not know yet.
struct ClusterMessage: Sendable {
    /// How to handle the message; `none` once its effect is durable.
    var turn: MessageTurn
    let heardAt: Instant
    let sentAt: Timestamp
    /// In units of 4 KiB.
    let cost: Int
    /// The number of protocols that have not reported the outcome yet.
    var open = 0
    /// The outcome that a protocol reported, unless it finished handling the message.
    var outcome: MessageShare.Outcome?
    /// Whether a protocol gave up the message: see `MessageShare.abandon`.
    var isAbandoned = false
    var takesOver = false
    /// Answers the client with an error.
    var giveUp: (@Sendable () -> Void)?
}

/// How this node handles a message.
enum MessageTurn: Sendable {
    /// These protocols decode and handle it.
    case arrivals([(place: Int, incoming: Incoming)])
    /// Reassembled from segments and decoded; the closure continues from there.
    case reassembled(@Sendable () -> Void)
    case none

    /// The number of protocols that handle the message.
    var count: Int {
        switch self {
        case .arrivals(let arrivals): arrivals.count
        case .reassembled: 1
        case .none: 0
        }
    }
}
