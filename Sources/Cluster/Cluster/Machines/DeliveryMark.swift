/// The mark of an outbox row: the ownership of its partition under which it was about to be posted. Written by a committed transaction before the
/// post; for a row that is posted at once, by the row's own commit.
///
///     owner(8) · epoch(8) · marked_at(database's clock)
///
/// A later owner that marks the row again leaves `marked_at` as it is: a row whose post has an unknown outcome is held from its first mark on.
///
/// A row without a mark was never posted, except by posts that are known to have failed.
package struct DeliveryMark: Hashable, Sendable {
    package let owner: NodeID
    package let epoch: UInt64

    package init(owner: NodeID, epoch: UInt64) {
        (self.owner, self.epoch) = (owner, epoch)
    }
}

/// Whether a row of the outbox may be posted.
package enum PostingVerdict: Hashable, Sendable {
    /// Mark it with this epoch, provided that the partition's row still has this owner and epoch and the device has no earlier row; after the commit
    /// ask again, then post.
    case markAndPost(DeliveryMark)
    /// A former owner marked it, so the outcome of its post is unknown: when it is time to post it again, mark it with this epoch, and post.
    case markAndRepeat(DeliveryMark)
    /// Marked under the present ownership: this node's queue has it already.
    case inProgress
    /// This node may not post it, or not now.
    case notOwner
}
