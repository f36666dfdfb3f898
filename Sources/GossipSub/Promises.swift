import Primitives

/// Who was asked for what, and has yet to send it. Of each request one id at random stands for all.
struct Promises: Sendable {
    private struct Promise {
        let id: MessageID
        let peer: PeerNumber
        let due: Instant
    }

    /// In the order in which they fall due.
    private var promises = Fifo<Promise>()
    /// Those that are still open, by id.
    private var open: [MessageID: [PeerNumber]] = [:]

    var count: Int { promises.count }

    mutating func add(_ id: MessageID, by peer: PeerNumber, due: Instant) {
        guard !open[id, default: []].contains(peer) else { return }
        open[id, default: []].append(peer)
        promises.append(Promise(id: id, peer: peer, due: due))
    }

    /// It came, from whomever.
    mutating func fulfil(_ id: MessageID) {
        if !open.isEmpty { open[id] = nil }
    }

    /// Who did not keep its word by now, once for each promise.
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
