package import Core
extension DeliveryQueue {
    package struct Configuration: Sendable {
        /// Deliveries in one post: gorush's own limit by default.
        package var maximumBatchCount = 100
        /// Deliveries in the post that tries whether gorush works again.
        package var probeBatchCount = 10
        /// Posts at once, each over a connection of its own.
        package var maximumBatchesInFlight = 8
        /// How long gorush should take for a post: the number of notifications in it is chosen for that. Half of what requests wait for.
        package var batchTarget: Duration = .seconds(1)
        /// What it takes for a notification, as long as it has answered nothing: the first posts are small. With `core.sync: true` each one
        /// costs a round trip to Apple or Google.
        package var assumedTime: Duration = .milliseconds(100)
        /// A post that is unanswered for so long is overdue: gorush counts as slow.
        package var slowAfter: Duration = .seconds(2)
        /// A slow gorush that answers nothing for so long is stalled.
        package var stalledAfter: Duration = .seconds(10)
        /// How long deliveries gather while other posts are on their way. With none on its way they go at once: a single notification gains
        /// nothing by waiting, and under load the posts in flight are what the next ones gather behind. 2 ms is well below the latency that
        /// anybody notices (10 ms are promised from relay to gorush), and at 3,000 notifications a second makes 500 posts of six.
        package var gathering: Duration = .milliseconds(2)
        /// How long the answer to a request waits for its deliveries. What waits longer makes room for what somebody still waits for.
        package var awaitLimit: Duration = .seconds(2)
        /// The pause after a delivery's failures.
        package var backoff = ExponentialBackoff(initial: .milliseconds(250), maximum: .seconds(30))
        /// However long gorush asks for.
        package var longestRetryAfter: Duration = .seconds(300)
        /// Deliveries in the queue: beyond, those that would expire first go. Only what is being posted, or will be next, can exceed it.
        package var limit = 100_000
        package var breaker = CircuitBreaker.Configuration()

        package init() {}
    }

    /// A gorush that owes an answer for too long. Prints `3 posts unanswered for 12 s`.
    package struct Slowness: Sendable, Hashable, CustomStringConvertible {
        /// Without an answer; 0 between a post that timed out and the next attempt.
        package let postCount: Int
        /// Of the oldest of them.
        package let age: Duration
        /// Nothing at all has been answered for ``Configuration/stalledAfter``.
        package let isStalled: Bool

        package init(postCount: Int, age: Duration, isStalled: Bool) {
            self.postCount = postCount
            self.age = age
            self.isStalled = isStalled
        }

        package var description: String {
            "\(postCount) \(postCount == 1 ? "post" : "posts") unanswered for \(Int(age / .seconds(1))) s"
        }
    }

    /// Deliveries to be posted together, no two of them for the same device.
    package struct Batch: Sendable, Hashable {
        /// Higher than any before.
        package let id: UInt64
        /// At least one, at most ``Configuration/maximumBatchCount``.
        package let deliveries: [Int64]
    }

    /// What whoever holds the queue has to do.
    package enum Action: Sendable, Hashable {
        /// Load the contents and post them; then ``DeliveryQueue/finished(_:outcome:except:now:)``, in any case.
        case post(Batch)
        /// They are too old, and not in the queue any more: drop and count them.
        case expire([Int64])
        /// The queue was full: they were the oldest, and are not in it any more. Drop and count them.
        case evict([Int64])
    }

    package typealias Outcome = PostOutcome

    /// What an outcome means for one delivery. Accepted and dropped ones are not in the queue any more.
    package enum Resolution: Sendable, Hashable {
        case accepted(Int64)
        case dropped(Int64)
        case retrying(Int64)
    }
}
