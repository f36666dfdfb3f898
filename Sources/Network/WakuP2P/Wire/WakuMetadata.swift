import Core

/// The metadata that nodes exchange after connecting, 66/WAKU2-METADATA. Request and response have the same form.
///
///     { 1 cluster id · 2 shards*, a field each · 3 shards*, packed }
///
/// Older nodes use field 2. Both fields are read in packed and unpacked form. Nodes disconnect peers of another cluster, and those without response.
struct WakuMetadata: Hashable, Sendable {
    /// The node's cluster; nil when it reports none.
    var clusterID: UInt32?
    /// The indices of the shards that the node relays, at most 1,024 when parsed.
    var shards: [UInt32]

    static let maximumShardCount = 1024
}

extension WakuMetadata {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        clusterID = nil
        var old: [UInt32] = []
        var new: [UInt32] = []
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: clusterID = UInt32(truncatingIfNeeded: try field.varint())
            case 2: try Self.append(field, of: reader, to: &old)
            case 3: try Self.append(field, of: reader, to: &new)
            default: break
            }
        }
        shards = new.isEmpty ? old : new
    }

    private static func append(_ field: ProtobufReader.Field, of reader: ProtobufReader, to shards: inout [UInt32]) throws(ProtobufError) {
        func append(_ shard: UInt64) throws(ProtobufError) {
            guard shards.count < maximumShardCount else { throw .tooMany }
            guard let shard = UInt32(exactly: shard) else { throw .malformed }
            shards.append(shard)
        }
        guard case .content(let range) = field.value else { return try append(try field.varint()) }
        var packed = ProtobufReader(reader.bytes, range)
        while packed.position < range.upperBound { try append(try packed.varint()) }
    }

    /// Encodes the protobuf, without the length prefix of the frame. Shards are in both fields, for older and newer nodes.
    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        if let clusterID { writer.field(1, UInt64(clusterID)) }
        for shard in shards { writer.field(2, UInt64(shard)) }
        if !shards.isEmpty {
            var packed = ProtobufWriter()
            for shard in shards { packed.varint(UInt64(shard)) }
            writer.field(3, packed.bytes)
        }
        return writer.bytes
    }
}
