import NIOCore

/// The connections of one listener. When there are too many it evicts the one whose client has been inactive for longest. Connections with
/// a request in progress are not evicted.
struct ConnectionTable<ID: Hashable & Sendable>: Sendable {
    private struct Entry {
        var isBusy: Bool
        var lastActivity: NIODeadline
    }

    let limit: Int
    private var entries: [ID: Entry] = [:]

    init(limit: Int) {
        self.limit = limit
    }

    /// The number of open connections, without evicted ones.
    var count: Int { entries.count }

    /// Adds a connection.
    ///
    /// - Returns: The evicted connection, to be closed; nil when the limit is not reached or all others are busy.
    mutating func opened(_ id: ID, at now: NIODeadline) -> ID? {
        var evicted: ID?
        if entries.count >= limit,
            let oldest = entries.filter({ !$0.value.isBusy }).min(by: { $0.value.lastActivity < $1.value.lastActivity })
        {
            evicted = oldest.key
            entries[oldest.key] = nil
        }
        entries[id] = Entry(isBusy: false, lastActivity: now)
        return evicted
    }

    /// Records activity. Evicted connections are ignored.
    mutating func advanced(_ id: ID, isBusy: Bool, at now: NIODeadline) {
        guard entries[id] != nil else { return }
        entries[id] = Entry(isBusy: isBusy, lastActivity: now)
    }

    mutating func closed(_ id: ID) {
        entries[id] = nil
    }
}
