package import Storage
package import Core
import NodeAPI
import Waku

/// The stored cursors: the time up to which no message of a pubsub topic was missed, in a property for each topic.
///
/// Each of several nodes has properties of its own as well. The common cursor is the least of theirs: the node that is furthest may have a relay that
/// is cut off from the others.
package enum RelayCursors {
    private static let prefix = "relay seen until "
    /// Older databases have a single cursor for all topics.
    private static let common = "relay seen until"
    /// How far a node's cursor may be behind the furthest one and still count. A node that is further behind was removed or has been cut off for long.
    static let maximumLag = Duration.seconds(3600)

    /// The cursors of these topics, without topics that the node never listened on.
    static func read(of topics: [PubsubTopic]) -> StoreCommand<[PubsubTopic: Timestamp]> {
        StoreCommand.each(([common] + topics.map { prefix + $0.rawValue }).map(Properties.property)).map { values in
            // It may be older than the topic's own position; then the catch-up covers more than was missed.
            let common = values[0].flatMap(Timestamp.init(bytes:))
            var cursors: [PubsubTopic: Timestamp] = [:]
            for (topic, value) in zip(topics, values.dropFirst()) { cursors[topic] = value.flatMap(Timestamp.init(bytes:)) ?? common }
            return cursors
        }
    }

    /// Makes the node's first run catch up from a time, on topics that it has never listened on.
    ///
    /// - Parameter replaces: whether a time that was set before is replaced; otherwise the earlier of both counts.
    package static func begin(at time: Timestamp, replaces: Bool = false) -> StoreCommand<Void> {
        Properties.property(common).then { value in
            let earlier = replaces ? nil : value.flatMap(Timestamp.init(bytes:)).map { min($0, time) }
            return .change([Properties.set(common, to: (earlier ?? time).bytes)])
        }
    }

    /// Stores the cursors of a node, and the common ones.
    ///
    /// - Parameter node: the node's name; nil for a single node.
    /// - Returns: the common cursors.
    static func save(_ cursors: [PubsubTopic: Timestamp], of node: String?, at now: Timestamp) -> StoreCommand<[PubsubTopic: Timestamp]> {
        guard let node, !cursors.isEmpty else { return .change(write(cursors), cursors) }
        return Properties.all().then { properties in
            var (common, changes) = ([PubsubTopic: Timestamp](), [Change]())
            for (topic, cursor) in cursors {
                let ofTopic = prefix + topic.rawValue + " of "
                changes.append(Properties.set(ofTopic + node, to: cursor.bytes))
                let others = properties.filter { $0.name.hasPrefix(ofTopic) && $0.name != ofTopic + node }
                    .map { ($0.name, cursor: Timestamp(bytes: $0.value) ?? Timestamp(rawValue: 0)) }
                let least = least(of: [cursor] + others.map(\.cursor), at: now)
                common[topic] = least
                // Removed nodes, whose names need not come back. A node that still runs stores its cursor again.
                changes += others.filter { $0.cursor < least }.map { Properties.remove($0.0) }
            }
            return .change(changes + write(common), common)
        }
    }

    /// The least of several nodes' cursors, without those that are too far behind the furthest.
    ///
    /// - Parameter cursors: at least one.
    static func least(of cursors: [Timestamp], at now: Timestamp) -> Timestamp {
        // The clock of another node may be ahead, or of one that is gone: it does not make the others late.
        let furthest = cursors.filter { $0 <= now }.max() ?? now
        return cursors.map { min($0, now) }.filter { furthest.since($0) <= maximumLag }.min() ?? furthest
    }

    private static func write(_ cursors: [PubsubTopic: Timestamp]) -> [Change] {
        guard !cursors.isEmpty else { return [] }
        // Every topic has its own property now.
        return cursors.map { Properties.set(prefix + $0.rawValue, to: $1.bytes) } + [Properties.remove(common)]
    }
}
