import Storage
import Waku

/// Up to when each pubsub topic was seen, as the store keeps it: a property each.
enum RelayCursors {
    private static let prefix = "relay seen until "
    /// Older databases hold one for all the topics that were listened on.
    private static let common = "relay seen until"

    /// Without those topics that were never listened on.
    static func read(of topics: [PubsubTopic]) -> StoreCommand<[PubsubTopic: Timestamp]> {
        StoreCommand.each(([common] + topics.map { prefix + $0.rawValue }).map(Properties.property)).map { values in
            // It may be older than a topic: then more is looked up than was missed.
            let common = values[0].flatMap(Timestamp.init(bytes:))
            var cursors: [PubsubTopic: Timestamp] = [:]
            for (topic, value) in zip(topics, values.dropFirst()) { cursors[topic] = value.flatMap(Timestamp.init(bytes:)) ?? common }
            return cursors
        }
    }

    static func write(_ cursors: [PubsubTopic: Timestamp]) -> [Change] {
        guard !cursors.isEmpty else { return [] }
        // Each topic has its own now.
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
