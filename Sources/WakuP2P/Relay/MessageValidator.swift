import GossipSub
import Waku

/// What is a Waku message, and is worth sending on.
///
/// What is no Waku message, or is beyond the network's limits, is its sender's fault. A timestamp far off is nobody's, because nodes hand
/// them on: it is handed over here, where the rules decide about age, but not to others.
struct MessageValidator: Sendable {
    struct Judgement {
        let verdict: GossipVerdict
        /// nil when it is not readable.
        let message: ReceivedMessage?
        let isWanted: Bool
    }

    /// How far a sender's clock may be off for a message to be sent on.
    var window: Duration
    /// nil: all are.
    var wants: (@Sendable (TopicTag) -> Bool)?

    func judge(_ message: GossipMessage, at now: Timestamp) -> Judgement {
        guard let parsed = try? WakuMessage(parsing: Array(message.data)), !parsed.contentTopic.rawValue.isEmpty else {
            return Judgement(verdict: .reject, message: nil, isWanted: false)
        }
        let isTimely = parsed.timestamp >= now - window && parsed.timestamp <= now + window
        let isWanted = wants.map { wants in parsed.contentTopic.tag.map { wants($0) } ?? false } ?? true
        return Judgement(
            verdict: isTimely ? .accept : .ignore,
            message: ReceivedMessage(message: parsed, pubsubTopic: PubsubTopic(rawValue: message.topic)), isWanted: isWanted)
    }
}
