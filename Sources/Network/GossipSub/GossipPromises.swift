import Core
import DequeModule

/// Requests for announced messages that the peers have not sent yet. One random id of each request is tracked, as in other
/// implementations of gossipsub.
struct GossipPromises: Sendable {
    private struct Promise {
        let id: MessageID
        let peer: PeerNumber
        let due: Instant
    }

    /// In order of their due time.
    private var promises = Deque<Promise>()
    /// The peers of unfulfilled promises, by message id.
    private var open: [MessageID: [PeerNumber]] = [:]

    mutating func add(_ id: MessageID, by peer: PeerNumber, due: Instant) {
        guard !open[id, default: []].contains(peer) else { return }
        open[id, default: []].append(peer)
        promises.append(Promise(id: id, peer: peer, due: due))
    }

    /// The message was received, from any peer.
    mutating func fulfil(_ id: MessageID) {
        if !open.isEmpty { open[id] = nil }
    }

    /// Removes overdue promises.
    ///
    /// - Returns: The peers that broke them, once for each promise.
    mutating func broken(at now: Instant) -> [PeerNumber] {
        var peers: [PeerNumber] = []
        while let promise = promises.first, promise.due <= now {
            _ = promises.popFirst()
            guard let index = open[promise.id]?.firstIndex(of: promise.peer) else { continue }
            open[promise.id]?.remove(at: index)
            if open[promise.id]?.isEmpty == true { open[promise.id] = nil }
            peers.append(promise.peer)
        }
        return peers
    }
}
