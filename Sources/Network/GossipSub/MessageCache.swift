/// The messages of the last heartbeats. Peers may request all of them (IWANT); those of the newest heartbeats are announced (IHAVE). The cache
/// is bounded in bytes; the oldest messages are evicted first.
struct MessageCache {
    private struct Entry {
        let message: GossipMessage
        /// How often each peer requested it.
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
        // The current heartbeat alone exceeds the capacity: evict its older half, so that the cost per message stays small.
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

    /// The messages to announce, the newest first.
    func ids(of topic: String) -> [MessageID] {
        windows.prefix(gossip).joined().filter { $0.topic == topic }.map(\.id)
    }

    /// The message that a peer requested; nil when it is not cached or the peer requested it `limit` times before.
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
