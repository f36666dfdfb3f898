/// The messages of the last heartbeats: what can be asked for, and what is told of. Bounded in bytes; the oldest go first.
struct MessageCache {
    private struct Entry {
        let message: GossipMessage
        /// Which peers asked for it, and how often.
        var replies: [PeerNumber: UInt8] = [:]
    }

    private let length: Int
    private let gossip: Int
    private let capacity: Int
    private var entries: [MessageID: Entry] = [:]
    /// The newest first.
    private var windows: [[GossipMessage]]
    private(set) var byteCount = 0

    init(length: Int, gossip: Int, capacity: Int) {
        self.length = max(1, length)
        self.gossip = gossip
        self.capacity = capacity
        windows = [[]]
    }

    var count: Int { entries.count }

    mutating func insert(_ message: GossipMessage) {
        guard entries.updateValue(Entry(message: message), forKey: message.id) == nil else { return }
        windows[0].append(message)
        byteCount += message.byteCount
        while byteCount > capacity, windows.count > 1 { dropOldest() }
        // One heartbeat brought too much: what came first of it goes, by the half, so that this costs little for each message.
        if byteCount > capacity {
            let kept = windows[0].count / 2
            remove(windows[0].dropLast(kept))
            windows[0] = Array(windows[0].suffix(kept))
        }
    }

    mutating func shift() {
        windows.insert([], at: 0)
        while windows.count > length { dropOldest() }
    }

    /// What is told of, the newest first.
    func ids(of topic: String) -> [MessageID] {
        windows.prefix(gossip).joined().filter { $0.topic == topic }.map(\.id)
    }

    /// For a peer that asks for it; nil when it is not there, or the peer had it often enough.
    mutating func reply(_ id: MessageID, to peer: PeerNumber, limit: UInt8) -> GossipMessage? {
        guard let index = entries.index(forKey: id) else { return nil }
        let count = entries.values[index].replies[peer, default: 0]
        guard count < limit else { return nil }
        entries.values[index].replies[peer] = count + 1
        return entries.values[index].message
    }

    private mutating func dropOldest() {
        remove(windows.removeLast()[...])
    }

    private mutating func remove(_ messages: ArraySlice<GossipMessage>) {
        for message in messages {
            entries[message.id] = nil
            byteCount -= message.byteCount
        }
    }
}
