package import Core
package import Waku
import WakuCrypto

/// A message reassembled from segments, which nodes that share the work treat as a message of its own.
public struct ReassembledMessage: Sendable {
    /// The same at every node, regardless of which segment arrived last. Differs when the same content is sent again later.
    package let hash: MessageHash
    /// The time at which its first segment was sent.
    package let sentAt: Timestamp
    /// Its share of the work limit, in units of 4 KiB.
    package let cost: Int
    package let byteCount: Int
    /// The hash that its segments announced.
    package let announcedHash: [UInt8]

    package init(_ bytes: [UInt8], announced announcedHash: [UInt8] = [], sentAt: Timestamp) {
        self.announcedHash = announcedHash
        hash = MessageHash(bytes: SHA256.hash(bytes + withUnsafeBytes(of: sentAt.rawValue.bigEndian, Array.init)))
        self.sentAt = sentAt
        byteCount = bytes.count
        cost = 1 + bytes.count / 4096
    }
}
