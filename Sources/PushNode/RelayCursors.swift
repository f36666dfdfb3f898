import PushStore
import Waku

/// Up to when each pubsub topic was seen, as the store keeps it: a property each.
enum RelayCursors {
    private static let prefix = "relay seen until "
    /// Older databases hold one for all the topics that were listened on.
    private static let common = "relay seen until"

    /// Without those topics that were never listened on.
    static func read(of topics: [PubsubTopic], from transaction: StoreTransaction) throws -> [PubsubTopic: Timestamp] {
        // It may be older than a topic: then more is looked up than was missed.
        let common = try transaction.property(common).flatMap(Timestamp.init(bytes:))
        var cursors: [PubsubTopic: Timestamp] = [:]
        for topic in topics {
            cursors[topic] = try transaction.property(prefix + topic.rawValue).flatMap(Timestamp.init(bytes:)) ?? common
        }
        return cursors
    }

    static func write(_ cursors: [PubsubTopic: Timestamp], to transaction: StoreTransaction) throws {
        guard !cursors.isEmpty else { return }
        for (topic, seenUntil) in cursors { try transaction.setProperty(prefix + topic.rawValue, seenUntil.bytes) }
        // Each topic has its own now.
        try transaction.removeProperty(common)
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
