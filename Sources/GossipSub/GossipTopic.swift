/// What is known of a topic: who is there, and with whom messages are exchanged.
struct GossipTopic {
    var isSubscribed = false
    /// Connected peers that announced it, in the order in which they did.
    var subscribers: [PeerNumber] = []
    /// To whom messages go as they come. Empty unless it is subscribed.
    var mesh: [PeerNumber] = []
    /// To whom own messages go while it is not subscribed, and until when.
    var fanout: [PeerNumber] = []
    var fanoutUntil = Duration.zero
    /// Until when neither side is to graft.
    var backOff: [PeerNumber: Duration] = [:]

    /// Beyond it, no more are kept: a peer that comes under ever new names gets that far.
    static let backOffLimit = 10_000

    /// Whether there is anything left to know.
    var isForgotten: Bool { !isSubscribed && subscribers.isEmpty && fanout.isEmpty && backOff.isEmpty }

    /// The later of two counts.
    mutating func keepAway(_ peer: PeerNumber, until: Duration) {
        guard backOff[peer] != nil || backOff.count < Self.backOffLimit else { return }
        backOff[peer] = max(backOff[peer] ?? until, until)
    }

    mutating func forgetBackOffs(before time: Duration) {
        if !backOff.isEmpty { backOff = backOff.filter { $0.value > time } }
    }

    mutating func leaves(_ peer: PeerNumber) {
        subscribers.removeAll { $0 == peer }
        mesh.removeAll { $0 == peer }
        fanout.removeAll { $0 == peer }
    }
}
