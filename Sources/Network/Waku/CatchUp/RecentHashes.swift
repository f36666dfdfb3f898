/// The hashes of the last messages, up to a capacity: a set that forgets its oldest element.
package struct RecentHashes {
    private let capacity: Int
    private var known: Set<MessageHash> = []
    /// In order of insertion. A ring buffer once it is full: `oldest` is replaced next.
    private var order: [MessageHash] = []
    private var oldest = 0

    /// - Parameter capacity: At least 1.
    package init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
    }

    /// - Returns: false when the hash was there already.
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
