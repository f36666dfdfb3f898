import GossipSub
import ProtobufWire
import Waku

/// Decides whether a gossiped message is delivered, forwarded, or held against the peers that sent it.
///
/// Peers weigh each message that they reject, so a relay that judges otherwise than its neighbours loses them: forwarding what they reject costs it
/// its own score, and rejecting what they forward makes it disconnect honest peers. A message is rejected when go-waku and nwaku both reject it, and
/// ignored when one of them does. The article on libp2p has the table.
struct MessageValidator: Sendable {
    struct Judgement {
        let verdict: GossipVerdict
        /// nil unless it is a valid message, forwarded or not.
        let message: ReceivedMessage?
        let isWanted: Bool
    }

    /// How far a sender's clock may be off for a message to be forwarded. Others forward it all the same: it is delivered here, where the rules
    /// decide about age.
    var window: Duration
    /// nil: all are.
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
        // Beyond this network's size limit, though perhaps not the sender's.
        guard let parsed, bytes.count <= WakuMessage.maximumByteCount, parsed.flaw == nil else {
            return Judgement(verdict: verdict == .reject ? .reject : .ignore, message: nil, isWanted: false)
        }
        let isTimely = parsed.timestamp >= now - window && parsed.timestamp <= now + window
        let isWanted = wants.map { wants in parsed.contentTopic.tag.map { wants($0) } ?? false } ?? true
        return Judgement(
            verdict: isTimely ? .accept : .ignore,
            message: ReceivedMessage(message: parsed, pubsubTopic: PubsubTopic(rawValue: message.topic)), isWanted: isWanted)
    }

    /// By the form alone.
    private static func verdict(_ fields: WakuMessageFields) -> GossipVerdict {
        guard let payload = fields.payload, fields.contentTopic?.isEmpty == false else { return .reject }
        var rejectedBy = fields.refusedBy
        if payload.isEmpty { rejectedBy.insert(.goWaku) }
        // nwaku has the same limit, which its operator may have changed.
        if fields.meta.count > WakuMessage.maximumMetaByteCount { rejectedBy.insert(.goWaku) }
        if rejectedBy == .all { return .reject }
        return rejectedBy.isEmpty ? .accept : .ignore
    }
}
