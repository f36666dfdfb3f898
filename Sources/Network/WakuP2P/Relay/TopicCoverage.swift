import Core
import GossipSub

/// Up to when all messages on a topic were received, as its members prove it: the peers of its mesh that this node chose. Times come in.
///
///     member:  joined ●━━━━━━━━━━● last heard ┄┄┄┄┄┄┄┄● lost
///                      messages     perhaps none
///
/// Membership alone proves nothing: members that fail together are noticed one after the other within a minute, and the first may be back before
/// the last is noticed. A frame proves reception up to now if its sender has been a member since the last proof or longer. Once no such member is
/// left, messages since the last proof may be lost.
///
/// A member that leaves beside one that is heard later is no loss, so peers that come and go beside a steady one cause none.
struct TopicCoverage {
    /// The members, each with the time at which it joined.
    private var joined: [PeerNumber: Instant] = [:]
    /// The last proof, or the last loss: a store query covers the time up to it. nil before the first member.
    private var provenUntil: Instant?
    private var lostFrom: Instant?

    /// Whether the topic has members.
    var isCovered: Bool { !joined.isEmpty }

    /// Records the present members. A peer that reconnects must be left out in between.
    mutating func update(members: [PeerNumber], at now: Instant) {
        joined = Dictionary(members.map { ($0, joined[$0] ?? now) }, uniquingKeysWith: min)
        guard isCovered else { return }
        guard let proven = provenUntil else { return provenUntil = now }
        guard !joined.values.contains(where: { $0 <= proven }) else { return }
        lostFrom = lostFrom ?? proven
        provenUntil = now
    }

    /// A frame of a peer was received.
    mutating func heard(_ peer: PeerNumber, at now: Instant) {
        if let start = joined[peer], let proven = provenUntil, start <= proven { provenUntil = now }
    }

    /// The time since which messages may be lost. Each loss is returned once, while there are members: a store query then covers all of it.
    mutating func takeLoss() -> Instant? {
        guard isCovered else { return nil }
        defer { lostFrom = nil }
        return lostFrom
    }
}
