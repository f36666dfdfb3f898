import LibP2P

/// Which of the peers with a service to ask, lightpush or a store. Peers that left their last request without an answer come last; beside peers that
/// answer, they get one request at a time, by which they can show that they answer again.
struct AnsweringPeers {
    /// Whether a request is under way, for each peer that did not answer.
    private var silent: [PeerID: Bool] = [:]

    /// The peers to ask, one after the other.
    ///
    /// - Parameter peers: All connected peers with the service, in random order.
    mutating func order(_ peers: [PeerID]) -> [PeerID] {
        if !silent.isEmpty {
            let connected = Set(peers)
            silent = silent.filter { connected.contains($0.key) }
        }
        let answering = peers.filter { silent[$0] == nil }
        return answering
            + peers.filter { peer in
                guard let isAsked = silent[peer] else { return false }
                return !isAsked || answering.isEmpty
            }
    }

    /// A request is sent to a peer.
    mutating func asked(_ peer: PeerID) {
        if silent[peer] != nil { silent[peer] = true }
    }

    /// A peer has answered a request, or failed to.
    mutating func finished(_ peer: PeerID, isAnswered: Bool) {
        silent[peer] = isAnswered ? nil : false
    }
}
