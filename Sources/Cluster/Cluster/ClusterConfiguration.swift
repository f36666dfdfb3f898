/// Times and bounds of the cluster. All nodes of a cluster must agree on them: they are constants of a release, except for ``gorushTimeout``.
package struct ClusterConfiguration: Hashable, Sendable {
    // MARK: Leases

    /// A lease that was not renewed for so long, as an observer has seen it, may be ended by the observer.
    package var lease: Duration = .seconds(5)
    /// How much earlier than ``lease`` its holder stops posting: for clock rates that differ, and for a post between the check and the socket.
    package var leaseMargin: Duration = .seconds(1)
    /// Between two heartbeats.
    package var heartbeatInterval: Duration = .seconds(1)
    /// Before the next heartbeat, when the last one showed partitions that this node should take.
    package var takeoverDelay: Duration = .milliseconds(100)

    // MARK: Deliveries

    /// Partitions of the devices.
    package var partitionCount = 256
    /// After how long an unanswered post is given up: `--gorush-timeout`. Told to nodes of earlier releases, which wait so long before they repeat
    /// the post of a former owner.
    package var gorushTimeout: Duration = .seconds(60)
    /// How long a node that hands a partition over waits for its unanswered posts. Then it hands over without their outcomes, and the next
    /// owner repeats them: see ``PostingVerdict/markAndRepeat(_:)``.
    package var handoverTimeout: Duration = .seconds(5)

    // MARK: Messages

    /// Those that this node knows, in the order of their versions.
    package var hashingRules = HashingRules.known
    /// Under load, all nodes together begin a transaction so often: each as often as there are nodes more rarely. One node alone does not wait.
    /// Reads for queries are paced by themselves.
    package var transactionInterval: Duration = .milliseconds(20)
    /// The node of rank k takes a message that nobody took after k times this.
    package var rankDelay: Duration = .milliseconds(700)
    /// Between two rows of finished messages.
    package var finishedInterval: Duration = .milliseconds(500)
    /// A row of finished messages that is full is written earlier, but not before this.
    package var finishedMinimumInterval: Duration = .milliseconds(100)
    /// Messages in a row of finished messages.
    package var finishedRowLimit = 4096
    /// Finished messages that wait to be written. Beyond, the oldest are left out; another node may handle them again.
    package var finishedBacklogLimit = 16_384
    /// How long rows of finished messages are kept.
    package var finishedRetention: Duration = .seconds(60)
    /// Finished messages of other nodes in memory, per generation.
    package var finishedCacheCapacity = 65_536
    /// Messages whose outcome is open. Beyond, messages that another node ranks first for are left to that node.
    package var openMessageLimit = 16_384
    /// The pause before a failed read or transaction is repeated.
    package var retryInterval: Duration = .milliseconds(250)
    /// When a message that can't be stored is answered with an error: within the 3 s that clients wait, and after every node had its turn.
    package var failureAnswerDelay: Duration = .milliseconds(2500)
    /// Nobody waits for an answer any more.
    package var answerExpiry: Duration = .seconds(30)
    /// How long after it was heard a registration must be answered, before the next rank publishes the answer.
    package var registrationAnswerTime: Duration = .milliseconds(700)
    /// The same for a request, which waits up to 2 s for gorush.
    package var requestAnswerTime: Duration = .milliseconds(2000)

    // MARK: Changes

    /// Between two readings of what other nodes have changed: see ``ChangeReader``.
    package var changeInterval: Duration = .seconds(60)
    /// How long the change of a transaction that is under way may remain unseen.
    package var changeOverlap: Duration = .seconds(60)
    /// How long changes can be read.
    package var changeRetention: Duration = .seconds(600)
    /// Between two full comparisons, for what neither a notification nor a reading has told.
    package var fullChangeInterval: Duration = .seconds(24 * 3600)

    package init() {}
}
