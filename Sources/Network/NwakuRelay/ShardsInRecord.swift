import Foundation
import Waku

/// The cluster and shards in a node's ENR, from its entry `rs` or `rsv` (`RelayShards`).
///
///     enr:base64url(RLP list of signature, sequence number, then names and values)
///
/// The signature is not checked: the record comes from the node's own REST API.
package struct ShardsInRecord: Hashable, Sendable {
    package let cluster: Int
    package let shards: Set<Int>

    /// Longer texts are refused: ENRs have at most 300 bytes.
    private static let longestText = 1024

    package init(cluster: Int, shards: Set<Int>) {
        self.cluster = cluster
        self.shards = shards
    }

    /// nil when the text is not an ENR, or one without shards.
    package init?(record: String) {
        guard record.hasPrefix("enr:"), record.utf8.count <= Self.longestText else { return nil }
        var text = String(record.dropFirst(4)).replacing("-", with: "+").replacing("_", with: "/")
        while !text.utf8.count.isMultiple(of: 4) { text += "=" }
        guard let data = Data(base64Encoded: text) else { return nil }
        var outer = RLPReader(Array(data)[...])
        guard let list = outer.next() else { return nil }
        var items = RLPReader(list)
        guard items.next() != nil, items.next() != nil else { return nil }
        while let name = items.next(), let value = items.next() {
            switch String(decoding: name, as: UTF8.self) {
            case "rs": self.init(RelayShards(list: value))
            case "rsv": self.init(RelayShards(bitVector: value))
            default: continue
            }
            return
        }
        return nil
    }

    private init?(_ listed: RelayShards?) {
        guard let listed else { return nil }
        cluster = Int(listed.clusterID)
        shards = Set(listed.shards.map(Int.init))
    }
}

/// Reads RLP items one after the other: the contents of a string or of a list.
private struct RLPReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    mutating func next() -> ArraySlice<UInt8>? {
        guard let first = rest.first else { return nil }
        switch first {
        case 0..<0x80: return take(1)
        case 0x80..<0xb8: return skip(1) ? take(Int(first) - 0x80) : nil
        case 0xb8..<0xc0: return long(Int(first) - 0xb7)
        case 0xc0..<0xf8: return skip(1) ? take(Int(first) - 0xc0) : nil
        default: return long(Int(first) - 0xf7)
        }
    }

    private mutating func long(_ byteCount: Int) -> ArraySlice<UInt8>? {
        // Two bytes are more than a record has.
        guard byteCount <= 2, skip(1), let length = take(byteCount) else { return nil }
        return take(length.reduce(0) { $0 << 8 | Int($1) })
    }

    private mutating func skip(_ count: Int) -> Bool { take(count) != nil }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
