import Core
import NIOCore

/// The connections of one listener. When there are too many it evicts one of the client network with most, the one that has been inactive for longest.
/// Connections with a request in progress are not evicted.
struct ConnectionTable<ID: Hashable & Sendable>: Sendable {
    private struct Entry {
        let network: AddressRange?
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
    /// - Parameter network: nil for a connection without an IP address.
    /// - Returns: The evicted connection, to be closed; nil when the limit is not reached or all others are busy.
    mutating func opened(_ id: ID, of network: AddressRange?, at now: NIODeadline) -> ID? {
        let evicted = entries.count >= limit ? candidate() : nil
        if let evicted { entries[evicted] = nil }
        entries[id] = Entry(network: network, isBusy: false, lastActivity: now)
        return evicted
    }

    private func candidate() -> ID? {
        var counts: [AddressRange?: Int] = [:]
        for entry in entries.values { counts[entry.network, default: 0] += 1 }
        return entries.filter { !$0.value.isBusy }.min {
            let (first, second) = (counts[$0.value.network, default: 0], counts[$1.value.network, default: 0])
            return first == second ? $0.value.lastActivity < $1.value.lastActivity : first > second
        }?.key
    }

    /// Records activity. Evicted connections are ignored.
    mutating func advanced(_ id: ID, isBusy: Bool, at now: NIODeadline) {
        guard let entry = entries[id] else { return }
        entries[id] = Entry(network: entry.network, isBusy: isBusy, lastActivity: now)
    }

    mutating func closed(_ id: ID) {
        entries[id] = nil
    }
}
