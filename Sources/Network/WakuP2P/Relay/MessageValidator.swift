import GossipSub
import Core
import Waku

/// Decides whether a gossiped message is delivered, forwarded, or counted as misbehaviour of the peers that sent it.
///
/// A relay that judges messages differently than its peers loses them: forwarding messages that they reject lowers its own score, and
/// rejecting messages that they forward makes it disconnect honest peers. So a message is rejected when both go-waku and nwaku reject it, and
/// ignored when one of them does. The article on libp2p has the table.
struct MessageValidator: Sendable {
    struct Judgement {
        let verdict: GossipVerdict
        /// The message if it is valid, whether it is forwarded or not.
        let message: ReceivedMessage?
        let isWanted: Bool
    }

    /// Messages whose timestamp differs by more are not forwarded. They are delivered, since the receiver has its own rules about age.
    var window: Duration
    /// Whether to deliver messages on a topic; nil delivers all.
    var wants: (@Sendable (TopicTag) -> Bool)?

    func judge(_ message: GossipMessage, at now: Timestamp) -> Judgement {
        let bytes = Array(message.data)
        let verdict: GossipVerdict
        let parsed: WakuMessage?
        do throws(ProtobufError) {
            let fields = try WakuMessageFields(parsing: bytes)
            verdict = Self.verdict(fields)
            parsed = verdict == .accept ? try? WakuMessage(fields, of: bytes) : nil
        } catch {
            return Judgement(verdict: .reject, message: nil, isWanted: false)
        }
        // Over this network's size limit, though perhaps not over the sender's.
        guard let parsed, bytes.count <= WakuMessage.maximumByteCount, parsed.flaw == nil else {
            return Judgement(verdict: verdict == .reject ? .reject : .ignore, message: nil, isWanted: false)
        }
        let isTimely = parsed.timestamp >= now - window && parsed.timestamp <= now + window
        let isWanted = wants.map { $0(parsed.contentTopic.listeningTag) } ?? true
        return Judgement(
            verdict: isTimely ? .accept : .ignore,
            message: ReceivedMessage(message: parsed, pubsubTopic: PubsubTopic(rawValue: message.topic)), isWanted: isWanted)
    }

    /// The verdict from the encoding alone.
    private static func verdict(_ fields: WakuMessageFields) -> GossipVerdict {
        guard let payload = fields.payload, fields.contentTopic?.isEmpty == false else { return .reject }
        var rejectedBy = fields.refusedBy
        if payload.isEmpty { rejectedBy.insert(.goWaku) }
        // nwaku has the same limit by default, but its operator can change it.
        if fields.meta.count > WakuMessage.maximumMetaByteCount { rejectedBy.insert(.goWaku) }
        if rejectedBy == .all { return .reject }
        return rejectedBy.isEmpty ? .accept : .ignore
    }
}
