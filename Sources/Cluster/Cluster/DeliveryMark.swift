package import Core

/// The mark of an outbox row: the ownership of its partition under which it was about to be posted. Written by a committed transaction before the
/// post; for a row that is posted at once, by the row's own commit.
///
///     owner(8) · epoch(8) · marked_at(database's clock, for operators)
///
/// A row without a mark was never posted, except by posts that are known to have failed.
package struct DeliveryMark: Hashable, Sendable {
    package let owner: NodeID
    package let epoch: UInt64

    package init(owner: NodeID, epoch: UInt64) {
        self.owner = owner
        self.epoch = epoch
    }
}

/// Whether a row of the outbox may be posted.
package enum PostingVerdict: Hashable, Sendable {
    /// Mark it with this epoch, provided that the partition's row still has this owner and epoch and the device has no earlier row; after the commit
    /// ask again, then post.
    case markAndPost(DeliveryMark)
    /// A former owner may have posted it, and may still record the outcome.
    case wait(until: Instant)
    /// It was marked under this ownership: the node's own queue tracks it.
    case inProgress
    /// This node may not post it, or not now.
    case notOwner
}
