import Cluster
import Core

/// A process of a node: the machines under test, and what a driver keeps beside them.
struct SimulatedNode {
    struct Row {
        enum State {
            case idle
            /// The transaction of the mark is on its way.
            case marking
            case posting
            /// Accepted by gorush; the transaction that records it is on its way, or to be sent at this time.
            case recording(sendAt: Milliseconds?)
        }

        let id: Int
        let message: Int
        let device: Int
        let partition: PartitionNumber
        var mark: DeliveryMark?
        /// When it may be posted again whose post by a former owner has an unknown outcome, by this node's clock.
        var heldUntil: Timestamp?
        var state = State.idle
        var retryAt: Milliseconds = 0
        /// When the transaction of the mark was sent.
        var markSentAt: Milliseconds = 0

        var isIdle: Bool {
            if case .idle = state { true } else { false }
        }
    }

    var process: Int
    var isRunning = true
    var pausedUntil: Milliseconds = 0
    /// Is to be stopped for so long right after it has sent a mark, or a post: when that hurts most.
    var pauseAtMark: Milliseconds = 0
    var pauseAtPost: Milliseconds = 0
    var cutUntil: Milliseconds = 0
    var deafUntil: Milliseconds = 0
    /// How long it was stopped, for a clock that does not count that.
    var suspended: Milliseconds = 0
    /// The wall clock's error.
    var clockError: Milliseconds = 0
    /// Since when nothing has disturbed it.
    var healthySince: Milliseconds = 0

    /// Stands in claims and rows of finished messages: the process's first.
    let processID: NodeID
    var member: ClusterMember
    var share: MessageShare
    var server: Int?
    var primaryCheck = PrimaryCheck()
    var outstanding: Set<Int> = []
    var wakeAt: Milliseconds?

    var finishedCursors: [NodeID: Int64] = [:]
    var rows: [Int: Row] = [:]
    /// Recorded as accepted: a stale read may still show them.
    var recorded: Set<Int> = []
    var stopping: Set<PartitionNumber> = []
    var nextPoll: Milliseconds = 0
    var nextMaintenance: Milliseconds = 0
    var lastRowID = 0
    /// Requests whose answer waits for gorush, by message.
    var awaiting: [Int: Milliseconds] = [:]

    init(process: Int, id: NodeID, configuration: ClusterConfiguration, at now: Milliseconds) {
        self.process = process
        processID = id
        member = ClusterMember(id, name: "node", configuration: configuration, at: .at(now))
        share = MessageShare(id, configuration: configuration)
        healthySince = now
    }
}

extension Timestamp {
    static func at(_ time: Milliseconds) -> Timestamp { Timestamp(rawValue: Int64(time) * 1_000_000) }
}
