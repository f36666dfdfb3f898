import Primitives

/// What is known of a topic: who is there, and with whom messages are exchanged.
struct GossipTopic {
    var isSubscribed = false
    /// Connected peers that announced it, in the order in which they did.
    var subscribers: [PeerNumber] = []
    /// To whom messages go as they come. Empty unless it is subscribed.
    var mesh: [PeerNumber] = []
    /// To whom own messages go while it is not subscribed, and until when.
    var fanout: [PeerNumber] = []
    var fanoutUntil: Instant?
    /// Until when neither side is to graft.
    var backoff: [PeerNumber: Instant] = [:]

    /// Beyond it, no more are kept: a peer that comes under ever new names gets that far.
    static let backoffLimit = 10_000

    /// Whether there is anything left to know.
    var isForgotten: Bool { !isSubscribed && subscribers.isEmpty && fanout.isEmpty && backoff.isEmpty }

    /// The later of two counts.
    mutating func keepAway(_ peer: PeerNumber, until: Instant) {
        guard backoff[peer] != nil || backoff.count < Self.backoffLimit else { return }
        backoff[peer] = max(backoff[peer] ?? until, until)
    }

    mutating func forgetBackoffs(before time: Instant) {
        if !backoff.isEmpty { backoff = backoff.filter { $0.value > time } }
    }

    mutating func leaves(_ peer: PeerNumber) {
        subscribers.removeAll { $0 == peer }
        mesh.removeAll { $0 == peer }
        fanout.removeAll { $0 == peer }
    }
}
