package import Core
extension DeliveryQueue {
    package struct Configuration: Sendable {
        /// The maximum number of deliveries in a post: gorush's own limit by default.
        package var maximumBatchCount = 100
        /// The maximum number of deliveries in a probe.
        package var probeBatchCount = 10
        /// The maximum number of concurrent posts, each over its own connection.
        package var maximumBatchesInFlight = 8
        /// The target duration of a post, from which the number of its notifications is chosen: half of ``awaitLimit``.
        package var batchTarget: Duration = .seconds(1)
        /// The assumed time per notification before gorush's first answer, so that the first posts are small. With `core.sync: true` each
        /// notification costs a round trip to Apple or Google.
        package var assumedTime: Duration = .milliseconds(100)
        /// Whether deliveries of strangers are doubtful.
        package var doubtsStrangers = false
        /// Whether new deliveries go out in the order in which their recipients last accepted one, the longest ago first, instead of their own order.
        package var favorsRested = false
        /// A post unanswered for this time is overdue: gorush counts as slow.
        package var slowAfter: Duration = .seconds(2)
        /// A slow gorush that answers nothing for this time is stalled.
        package let stalledAfter: Duration = .seconds(10)
        /// How long deliveries gather while other posts are in flight. Without posts in flight they go out at once: a single notification gains
        /// nothing by waiting, and under load deliveries gather behind the posts in flight. 2 ms is well below a noticeable latency (10 ms are
        /// promised from relay to gorush), and at 3,000 notifications a second makes 500 posts of six.
        package var gathering: Duration = .milliseconds(2)
        /// How long the answer to a request waits for its deliveries. Deliveries that have waited longer move to the backlog.
        package var awaitLimit: Duration = .seconds(2)
        /// The pause before a delivery is retried, by its number of failures.
        package var backoff = ExponentialBackoff(initial: .milliseconds(250), maximum: .seconds(30))
        /// The upper limit for a pause that gorush asks for.
        package var longestRetryAfter: Duration = .seconds(300)
        /// The maximum number of deliveries in the queue; beyond it, deliveries are evicted: see ``EvictionOrder``. Only deliveries in
        /// flight or about to be posted can exceed it.
        package var limit = 100_000
        package var breaker = CircuitBreaker.Configuration()

        package init() {}
    }

    /// How many posts may go out besides the queue's own limits.
    struct Allowance: Hashable {
        var count: Int
        /// The time at which it grows; nil: not by itself.
        var resumes: Timestamp?
    }

    /// A gorush with overdue answers. Prints `3 posts unanswered for 12 s`.
    package struct Slowness: Sendable, Hashable, CustomStringConvertible {
        /// The number of unanswered posts; 0 between a post that timed out and the next attempt.
        package let postCount: Int
        /// The age of the oldest unanswered post.
        package let age: Duration
        /// Whether nothing has been answered for ``Configuration/stalledAfter``.
        package let isStalled: Bool

        package var description: String {
            "\(postCount) \(postCount == 1 ? "post" : "posts") unanswered for \(Int(age / .seconds(1))) s"
        }
    }

    /// Deliveries to be posted together, no two of them for the same device.
    package struct Batch: Sendable, Hashable {
        /// Increases with each batch.
        package let id: UInt64
        /// The outbox ids: at least one, at most ``Configuration/maximumBatchCount``.
        package let deliveries: [Int64]
    }

    /// A task for the owner of the queue.
    package enum Action: Sendable, Hashable {
        /// Load the contents and post them; then ``DeliveryQueue/finished(_:outcome:except:now:)``, in any case.
        case post(Batch)
        /// These deliveries expired and have left the queue: drop and count them.
        case expire([Int64])
        /// The queue was full, and these deliveries have left it: drop and count them.
        case evict([Int64])
    }

    package typealias Outcome = PostOutcome

    /// The result of a post for one delivery. Accepted and dropped deliveries have left the queue.
    package enum Resolution: Sendable, Hashable {
        case accepted(Int64)
        case dropped(Int64)
        case retrying(Int64)
    }
}
