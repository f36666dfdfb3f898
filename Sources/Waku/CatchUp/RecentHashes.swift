/// The last so many messages, by hash.
package struct RecentHashes {
    private let capacity: Int
    private var known: Set<MessageHash> = []
    /// A ring, once it is full: `oldest` is the next to go.
    private var order: [MessageHash] = []
    private var oldest = 0

    /// - Precondition: At least one.
    package init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
    }

    /// Whether it was not yet among them.
    package mutating func insert(_ hash: MessageHash) -> Bool {
        guard known.insert(hash).inserted else { return false }
        if order.count < capacity {
            order.append(hash)
        } else {
            known.remove(order[oldest])
            order[oldest] = hash
            oldest = (oldest + 1) % capacity
        }
        return true
    }
}
