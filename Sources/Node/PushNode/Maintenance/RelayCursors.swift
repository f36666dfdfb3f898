package import Storage
package import Core
import Waku

/// The stored cursors: up to when each pubsub topic was seen, in a property for each topic.
package enum RelayCursors {
    private static let prefix = "relay seen until "
    /// Older databases have a single cursor for all topics.
    private static let common = "relay seen until"

    /// The cursors of these topics, except those that the node never listened on.
    static func read(of topics: [PubsubTopic]) -> StoreCommand<[PubsubTopic: Timestamp]> {
        StoreCommand.each(([common] + topics.map { prefix + $0.rawValue }).map(Properties.property)).map { values in
            // It may be older than the topic's own position; then the catch-up covers more than was missed.
            let common = values[0].flatMap(Timestamp.init(bytes:))
            var cursors: [PubsubTopic: Timestamp] = [:]
            for (topic, value) in zip(topics, values.dropFirst()) { cursors[topic] = value.flatMap(Timestamp.init(bytes:)) ?? common }
            return cursors
        }
    }

    /// Has the first run of a node catch up from a time, on all topics that it never listened on.
    package static func begin(at time: Timestamp) -> StoreCommand<Void> {
        Properties.property(common).then { value in .change(value == nil ? [Properties.set(common, to: time.bytes)] : []) }
    }

    static func write(_ cursors: [PubsubTopic: Timestamp]) -> [Change] {
        guard !cursors.isEmpty else { return [] }
        // Every topic has its own property now.
        return cursors.map { Properties.set(prefix + $0.rawValue, to: $1.bytes) } + [Properties.remove(common)]
    }
}

extension Timestamp {
    /// 8 bytes, big-endian.
    var bytes: [UInt8] { withUnsafeBytes(of: rawValue.bigEndian, Array.init) }

    init?(bytes: [UInt8]) {
        guard bytes.count == 8 else { return nil }
        self.init(rawValue: Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) }))
    }
}
