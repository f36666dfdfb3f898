/// The hash that identifies a message among nodes: that of the Waku message, or of a message reassembled from segments. 32 bytes.
package struct MessageKey: Hashable, Sendable {
    /// The first 8 bytes: used to compute ranks and stored in rows of finished messages. Collisions are neglected: an attacker would need 2⁶⁴
    /// attempts to make the nodes of higher rank ignore a certain message.
    package let prefix: UInt64
    private let second, third, fourth: UInt64

    /// - Parameter hash: 32 bytes; nil for any other number.
    package init?(_ hash: [UInt8]) {
        guard hash.count == 32 else { return nil }
        self = hash.withUnsafeBytes { bytes in
            func word(_ place: Int) -> UInt64 { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8 * place, as: UInt64.self)) }
            return MessageKey(prefix: word(0), second: word(1), third: word(2), fourth: word(3))
        }
    }

    package init(prefix: UInt64, second: UInt64 = 0, third: UInt64 = 0, fourth: UInt64 = 0) {
        self.prefix = prefix
        self.second = second
        self.third = third
        self.fourth = fourth
    }

    /// The 32 bytes.
    package var bytes: [UInt8] {
        let words = (prefix.bigEndian, second.bigEndian, third.bigEndian, fourth.bigEndian)
        return withUnsafeBytes(of: words) { Array($0) }
    }
}

/// A claim of a message. Inserted first in the transaction of the message's effect, with the message key as primary key, so that a message takes
/// effect once in the cluster.
///
///     hour · key(32) · node(8) · kind(2)
package struct Claim: Hashable, Sendable {
    /// The kind of message, on which the time limit of its answer depends.
    package enum Kind: Int, Hashable, Sendable {
        case registration = 1
        case request = 2
    }

    package let node: NodeID
    package let kind: Kind

    package init(node: NodeID, kind: Kind) {
        (self.node, self.kind) = (node, kind)
    }
}
