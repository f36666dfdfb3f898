package import Storage
package import Core
import NodeAPI
import Waku

/// The stored cursors: the time up to which no message of a pubsub topic was missed, in a property for each topic.
package enum RelayCursors {
    private static let prefix = "relay seen until "
    /// Older databases have a single cursor for all topics.
    private static let common = "relay seen until"

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

    static func write(_ cursors: [PubsubTopic: Timestamp]) -> [Change] {
        guard !cursors.isEmpty else { return [] }
        // Every topic has its own property now.
        return cursors.map { Properties.set(prefix + $0.rawValue, to: $1.bytes) } + [Properties.remove(common)]
    }
}
