import NIOCore

/// The connections of one listener. When there are too many it names the one to close: the one that its client did nothing on for longest.
/// Those whose request the listener is working on stay.
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

    /// How many are open, without those that were named to be closed.
    var count: Int { entries.count }

    /// Returns the connection to close for it; nil when there is room, or all others are busy.
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

    /// One that was named to be closed is not there any more.
    mutating func advanced(_ id: ID, isBusy: Bool, at now: NIODeadline) {
        guard entries[id] != nil else { return }
        entries[id] = Entry(isBusy: isBusy, lastActivity: now)
    }

    mutating func closed(_ id: ID) {
        entries[id] = nil
    }
}
