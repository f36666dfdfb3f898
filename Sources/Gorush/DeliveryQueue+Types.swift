extension DeliveryQueue {
    public struct Configuration: Sendable {
        /// Deliveries in one post: gorush's own limit by default.
        public var maximumBatchCount = 100
        /// Deliveries in one post while gorush fails.
        public var probeBatchCount = 10
        public var maximumBatchesInFlight = 8
        /// The pause after a delivery's first failure; it doubles with each one more.
        public var firstBackoff: Duration = .milliseconds(250)
        public var longestBackoff: Duration = .seconds(30)
        /// The longest that all posts pause after a failure, unless gorush asks for more: after it one is tried.
        public var longestPause: Duration = .seconds(5)
        /// However long gorush asks for.
        public var longestRetryAfter: Duration = .seconds(300)

        public init() {}
    }

    /// Deliveries to be posted together.
    public struct Batch: Sendable, Hashable {
        /// Counts up from 1, and is never used again.
        public let id: UInt64
        /// At least one, at most ``Configuration/maximumBatchCount``.
        public let deliveries: [Int64]
    }

    /// What whoever holds the queue has to do.
    public enum Action: Sendable, Hashable {
        /// Load the contents and post them; then ``DeliveryQueue/finished(_:outcome:now:)``, in any case.
        case post(Batch)
        /// They are too old, and not in the queue any more: drop and count them.
        case expire([Int64])
    }

    /// What became of a batch.
    public enum Outcome: Sendable, Hashable {
        case accepted
        /// gorush understood, and does not want it: the fault is in the batch.
        case refused
        /// gorush is out of order, or not to be reached: the fault is not in the batch.
        /// - Parameter retryAfter: how long gorush asks to wait.
        case failed(retryAfter: Duration?)
        /// Nothing was left to post: this says nothing about gorush.
        case notPosted
    }

    /// What an outcome means for one delivery. Accepted and dropped ones are not in the queue any more.
    public enum Resolution: Sendable, Hashable {
        case accepted(Int64)
        case dropped(Int64)
        case retrying(Int64)
    }
}
