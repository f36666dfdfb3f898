import Core

/// The peers of a topic: subscribers, mesh and fanout.
struct GossipTopic {
    var isSubscribed = false
    /// Connected peers that subscribed, in order of their subscriptions.
    var subscribers: [PeerNumber] = []
    /// The peers that messages are forwarded to. Empty unless this node is subscribed.
    var mesh: [PeerNumber] = []
    /// The peers that this node's messages are sent to while it is not subscribed.
    var fanout: [PeerNumber] = []
    /// The time at which the fanout is dropped, unless another message is published before.
    var fanoutUntil: Instant?
    /// For each pruned peer, the time before which neither side may graft.
    var backoff: [PeerNumber: Instant] = [:]

    /// The maximum number of backoffs: a bound for a peer that keeps changing its identity.
    static let backoffLimit = 10_000

    /// Whether nothing is stored, so that the topic can be removed.
    var isEmpty: Bool { !isSubscribed && subscribers.isEmpty && fanout.isEmpty && backoff.isEmpty }

    /// Sets the backoff of a peer unless it has a later one.
    mutating func setBackoff(of peer: PeerNumber, until: Instant) {
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
