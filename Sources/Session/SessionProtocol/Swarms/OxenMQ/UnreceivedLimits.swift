/// Which connections hold too many bytes that are no message yet, or wait while the connection is paused.
struct UnreceivedLimits: Hashable, Sendable {
    /// Limit of a connection.
    var each: Int
    /// Bytes of each connection that do not count towards ``common``: more than usually wait while the store is slow.
    var free = 1 << 20
    /// Limit of all connections together, each without ``free`` bytes.
    var common = 64 << 20

    /// - Parameter counts: the held bytes of connections.
    /// - Returns: the connections to close: those over their limit, and then the largest ones until the others are within the common limit.
    func excess(_ counts: [ConnectionNumber: Int]) -> [ConnectionNumber] {
        let ordered = counts.filter { $0.value > min(free, each) }.sorted { ($0.value, $0.key.rawValue) > ($1.value, $1.key.rawValue) }
        var rest = ordered.reduce(0) { $0 + max($1.value - free, 0) }
        return ordered.prefix { _, count in
            defer { rest -= max(count - free, 0) }
            return count > each || rest > common
        }.map(\.key)
    }
}
