/// Times and bounds of the cluster. All nodes of a cluster must agree on them: they are constants of a release, except for ``gorushTimeout``
/// and ``replyDelay``. If another node's ``replyDelay`` is longer by 0.7 s, its answers to registrations are published twice.
package struct ClusterConfiguration: Hashable, Sendable {
    // MARK: Leases

    /// The duration of a lease: an observer that has seen no renewal for so long may end it.
    package var lease: Duration = .seconds(5)
    /// The margin by which the holder stops posting before the end of ``lease``: for differing clock rates, and for the time between the check and
    /// the write to the socket.
    package var leaseMargin: Duration = .seconds(1)
    /// The time between two heartbeats.
    package let heartbeatInterval: Duration = .seconds(1)
    /// The time until the next heartbeat if the last one showed partitions for this node to take. The least time between two heartbeats.
    package let takeoverDelay: Duration = .milliseconds(100)
    /// How long a node that leaves goes on serving its share of the keys once the other nodes can read that it leaves. They read it with their next
    /// heartbeat, and then begin to serve these keys.
    package var keyHandoverTime: Duration = .seconds(2)

    // MARK: Deliveries

    /// The number of partitions of the devices.
    package var partitionCount = 256
    /// After how long an unanswered post is given up: `--gorush-timeout`. Told to nodes of earlier releases, which wait so long before they repeat
    /// the post of a former owner.
    package var gorushTimeout: Duration = .seconds(60)
    /// How long a node that hands a partition over waits for its unanswered posts. Then it hands over without their outcomes, and the next
    /// owner repeats them: see ``PostingVerdict/markAndRepeat(_:)``.
    package var handoverTimeout: Duration = .seconds(5)

    // MARK: Messages

    /// The rules that this node supports, in the order of their versions.
    package var hashingRules = HashingRules.known
    /// The average interval, under load, at which all nodes together begin a transaction: with n nodes, each begins one every n intervals. A single
    /// node does not wait. Reads for queries are paced separately.
    package let transactionInterval: Duration = .milliseconds(20)
    /// The node of rank k takes a message that no node has taken after k times this.
    package var rankDelay: Duration = .milliseconds(700)
    /// The time between two rows of finished messages.
    package let finishedInterval: Duration = .milliseconds(500)
    /// The least time between two rows: a full row is written earlier than ``finishedInterval``, but not before this.
    package let finishedMinimumInterval: Duration = .milliseconds(100)
    /// The most messages in a row of finished messages.
    package var finishedRowLimit = 4096
    /// The most finished messages that wait to be written. Above this limit, the oldest are left out; another node may handle them again.
    package var finishedBacklogLimit = 16_384
    /// How long rows of finished messages are kept.
    package let finishedRetention: Duration = .seconds(60)
    /// The most finished messages of other nodes held in memory, per generation.
    package let finishedCacheCapacity = 65_536
    /// The most messages with an open outcome. Above this limit, a node leaves messages for which it has a higher rank than 0 to the other nodes.
    package var openMessageLimit = 16_384
    /// The pause before a failed read or transaction is repeated.
    package var retryInterval: Duration = .milliseconds(250)
    /// The time after which a message that can't be stored is answered with an error: within the 3 s that clients wait, and after every node had its
    /// turn.
    package let failureAnswerDelay: Duration = .milliseconds(2500)
    /// The time after which no client waits for an answer any more.
    package let answerExpiry: Duration = .seconds(30)
    /// The time for which answers are held: `--reply-delay`.
    package var replyDelay: Duration = .zero
    /// The time after receipt, besides ``replyDelay``, within which a registration must be answered; then the next rank publishes the answer.
    package let registrationAnswerTime: Duration = .milliseconds(700)
    /// The same for a request, which waits up to 2 s for gorush, as long as its answer is held at most.
    package let requestAnswerTime: Duration = .milliseconds(2000)

    // MARK: Changes

    /// The time between two readings of other nodes' changes: see ``ChangeReader``.
    package var changeInterval: Duration = .seconds(60)
    /// The longest time for which the change of a running transaction may remain invisible.
    package let changeOverlap: Duration = .seconds(60)
    /// The time for which changes can be read.
    package let changeRetention: Duration = .seconds(600)
    /// The time between two full comparisons, for changes missed by both notifications and readings.
    package let fullChangeInterval: Duration = .seconds(24 * 3600)

    package init() {}
}
