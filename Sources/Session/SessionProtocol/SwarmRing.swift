/// The ring of swarm ids. An account belongs to the swarm whose id is nearest to its position, in either direction around the ring of 2^64; of two
/// equally near ids, to the lower one.
package struct SwarmRing: Hashable, Sendable {
    /// The id of nodes without a swarm.
    package static let noSwarm = UInt64.max

    /// Strictly ascending.
    package let ids: [UInt64]

    package init(_ ids: some Sequence<UInt64>) {
        self.ids = Set(ids).sorted()
    }

    /// nil if there are no swarms.
    package func swarm(at position: UInt64) -> UInt64? {
        guard let first = ids.first, let last = ids.last else { return nil }
        // Binary search for the first id that is not below the position.
        var (low, high) = (0, ids.count)
        while low < high {
            let middle = (low + high) / 2
            if ids[middle] < position { low = middle + 1 } else { high = middle }
        }
        let above = low < ids.count ? ids[low] : first
        let below = low > 0 ? ids[low - 1] : last
        let (up, down) = (above &- position, position &- below)
        return up == down ? min(above, below) : up < down ? above : below
    }
}
