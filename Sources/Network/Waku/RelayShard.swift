import Core

/// A shard of a cluster, 51/WAKU2-RELAY-SHARDING. Its pubsub topic is `/waku/2/rs/<cluster>/<shard>`.
public struct RelayShard: Hashable, Sendable {
    /// The network: 16 for Status, 1 for Waku's own.
    public let cluster: UInt16
    /// The shard's index in the cluster.
    public let shard: UInt16

    /// Parses the name of a pubsub topic such as `/waku/2/rs/16/32`; nil for a topic of another form.
    public init?(_ topic: String) {
        let parts = topic.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0].isEmpty, parts[1...3] == ["waku", "2", "rs"], let cluster = Self.number(parts[4]),
            let shard = Self.number(parts[5])
        else { return nil }
        self.cluster = cluster
        self.shard = shard
    }

    private static func number(_ digits: Substring) -> UInt16? {
        guard digits.utf8.count <= 5, digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return UInt16(digits)
    }
}

extension PubsubTopic {
    /// The shard that the topic names; nil for a topic of another form than `/waku/2/rs/<cluster>/<shard>`.
    public var relayShard: RelayShard? { RelayShard(rawValue) }
}

/// The shards of one cluster that a node relays, as its node record (ENR) lists them, 31/WAKU2-ENR.
///
///     rs:  cluster(2, big-endian) ‖ count(1) ‖ shards(2 each)
///     rsv: cluster(2) ‖ 128 bytes, one bit per shard, lowest first
public struct RelayShards: Hashable, Sendable {
    /// The cluster of all the shards.
    public let clusterID: UInt16
    /// The indices of the shards in the cluster.
    public let shards: [UInt16]

    /// Creates a list of shards of one cluster.
    public init(clusterID: UInt16, shards: [UInt16]) {
        self.clusterID = clusterID
        self.shards = shards
    }

    /// Parses the value of the entry `rs`; nil when it is malformed.
    public init?(list value: some Collection<UInt8>) {
        let bytes = Array(value)
        guard bytes.count >= 3, bytes.count == 3 + 2 * Int(bytes[2]) else { return nil }
        clusterID = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        shards = stride(from: 3, to: bytes.count, by: 2).map { (index: Int) -> UInt16 in
            UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
        }
    }

    /// Parses the value of the entry `rsv`; nil when it is malformed.
    public init?(bitVector value: some Collection<UInt8>) {
        let bytes = Array(value)
        guard bytes.count == 130 else { return nil }
        clusterID = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        shards = (0..<1024 as Range<UInt16>).filter { bytes[2 + Int($0 / 8)] >> ($0 % 8) & 1 == 1 }
    }
}

extension RelayShards {
    /// The shards in the text form of a node record. The signature is not checked, because the text comes from the node's own REST API. nil for
    /// other texts, and for records without shards.
    package init?(record text: String) {
        // ENRs have at most 300 bytes.
        guard text.hasPrefix("enr:"), text.utf8.count <= 1024, let bytes = Base64.decodeURL(text.dropFirst(4).utf8),
            var items = RLPReader(listIn: bytes), items.skip() != nil, items.skip() != nil
        else { return nil }
        while let name = items.string(), let value = items.skip() {
            switch String(decoding: name, as: UTF8.self) {
            case "rs": self.init(list: value)
            case "rsv": self.init(bitVector: value)
            default: continue
            }
            return
        }
        return nil
    }
}
