package import Core
package import Waku
import WakuCrypto

/// What was put together from segments: for nodes that share the work, a message of its own.
package struct ReassembledMessage: Sendable {
    /// The same at every node, whichever segment came last. When the same is sent again, later, it has another.
    package let hash: MessageHash
    /// When the first of its segments was sent.
    package let sentAt: Timestamp
    /// In units of 4 KiB.
    package let cost: Int

    package init(_ bytes: [UInt8], sentAt: Timestamp) {
        hash = MessageHash(bytes: SHA256.hash(bytes + withUnsafeBytes(of: sentAt.rawValue.bigEndian, Array.init)))
        self.sentAt = sentAt
        cost = 1 + bytes.count / 4096
    }
}
