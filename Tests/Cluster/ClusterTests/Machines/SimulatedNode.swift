@testable import Cluster
import Core

/// A process of a node: the state machines under test, and the state of a driver.
struct SimulatedNode {
    struct Row {
        enum State {
            case idle
            /// The transaction of the mark is in progress.
            case marking
            case posting
            /// Accepted by gorush; the transaction that records it is in progress, or to be sent at this time.
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
    /// How long to stop it right after it has sent a mark or a post, the worst moment.
    var pauseAtMark: Milliseconds = 0
    var pauseAtPost: Milliseconds = 0
    var cutUntil: Milliseconds = 0
    var deafUntil: Milliseconds = 0
    /// The total time for which it was stopped, for a clock that does not count it.
    var suspended: Milliseconds = 0
    /// The wall clock's error.
    var clockError: Milliseconds = 0
    /// The time since which no fault has affected it.
    var healthySince: Milliseconds = 0

    /// The process's first id, used in claims and rows of finished messages.
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
