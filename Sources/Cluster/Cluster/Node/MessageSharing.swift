import Core
import NodeAPI
import NodeMetrics
import Storage
import Synchronization

/// Takes over messages that other nodes have not handled in time, and tells other nodes which messages this node has finished.
struct MessageSharing: Sendable {
    private static let sweepInterval = Duration.seconds(1)
    /// The interval of checks while the outcome of any message is unknown.
    private static let pace = Duration.milliseconds(50)

    let node: ClusterNode
    let duties: ClusterDuties

    /// Executes the actions of `MessageShare` when they are due. Runs until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            var leftCount = 0
            for await _ in node.messageWakeUp {
                while true {
                    let now = Instant.now
                    let (actions, row) = node.state.withLock { ($0.share.advance(to: now), $0.share.log.row(at: now)) }
                    // In separate tasks: the database may hang, and error answers must not wait for it.
                    if let row { group.addTask { await write(row) } }
                    if !actions.isEmpty { group.addTask { await carryOut(actions) } }
                    let (isIdle, left) = node.state.withLock { state in
                        if now >= state.nextSweep { forgetOld(&state, at: now) }
                        let isIdle = state.entries.isEmpty && state.share.nextWakeUp == nil && state.share.log.nextWakeUp == nil
                        return (isIdle, state.share.leftCount)
                    }
                    node.counters.add(.clusterLeft, left - leftCount)
                    leftCount = left
                    if isIdle { break }
                    guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
                }
            }
        }
    }

    private func write(_ row: FinishedLog.Row) async {
        let result = await node.onThread(node.messageThread) { database throws(StoreError) in try database.write(row) }
        let isCommitted = (try? result.get()) != nil
        noteFailure(result)
        node.state.withLock { $0.share.log.wrote(isCommitted: isCommitted, at: .now) }
        node.messageWakeUp.signal()
    }

    /// Removes entries that have expired or that other nodes have finished.
    private func forgetOld(_ state: inout ClusterState, at now: Instant) {
        state.nextSweep = now + Self.sweepInterval
        state.entries = state.entries.filter { key, entry in
            if now - entry.heardAt > ClusterNode.entryLifetime { state.share.abandon(key) }
            return state.share.isOpen(key)
        }
        state.wholes = state.wholes.filter { state.entries[$0.value] != nil }
        state.waitingCost = state.entries.values.reduce(0) { $0 + ($1.open == 0 ? $1.cost : 0) }
    }

    private func carryOut(_ actions: [MessageShare.Action]) async {
        for case .answerFailure(let key) in actions { answerFailure(key) }
        var actions = actions[...]
        var due: [MessageTurn] = []
        while let action = actions.popFirst() {
            switch action {
            case .readFinishedRows:
                let read = await readFinishedRows()
                actions += node.state.withLock { state in
                    read ? state.share.finishedRowsRead() : state.share.readFailed(at: .now)
                }
            case .lookUpClaims(let keys):
                actions += await lookUpClaims(keys)
            case .handle(let key), .repeatTransaction(let key):
                due.append(begin(key, takesOver: false))
            case .takeOverAnswer(let key):
                node.counters.add(.clusterAnswered)
                due.append(begin(key, takesOver: true))
            case .answerFailure: break
            }
        }
        var arrivals: [(place: Int, incoming: Incoming)] = []
        for turn in due {
            switch turn {
            case .arrivals(let more):
                arrivals += more.map { arrival in
                    var arrival = arrival
                    arrival.incoming.isRetry = true
                    return arrival
                }
            case .reassembled(let handle): handle()
            case .none: break
            }
        }
        if !arrivals.isEmpty { await duties.deliver(arrivals) }
    }

    private func answerFailure(_ key: MessageKey) {
        let giveUp = node.state.withLock { state in
            let giveUp = state.entries[key]?.giveUp
            // A message with an unknown outcome is kept until the outcome is known.
            if state.share.isOpen(key) { state.entries[key]?.giveUp = nil } else { state.entries[key] = nil }
            return giveUp
        }
        giveUp?()
    }

    private func readFinishedRows() async -> Bool {
        while true {
            let known = node.state.withLock { $0.finishedUpTo.mapValues(\.sequence) }
            let result = await node.onThread(node.messageThread) { [first = node.first] database throws(StoreError) in
                try database.finishedRows(after: known, except: first)
            }
            guard case .success(let rows) = result else {
                noteFailure(result)
                return false
            }
            node.state.withLock { $0.finishedElsewhere(rows, at: .now) }
            if rows.count < ClusterDatabase.finishedRowLimit { return true }
        }
    }

    private func lookUpClaims(_ keys: [MessageKey]) async -> [MessageShare.Action] {
        let wanted = node.state.withLock { state in
            let now = Timestamp.now().wholeSeconds + state.clockOffset
            return keys.compactMap { key -> (hour: ClaimWindow.Hour, key: MessageKey)? in
                guard let sent = state.entries[key]?.sentAt, sent.rawValue > 0,
                    case .claim(let hour) = state.window.verdict(timestamp: sent.wholeSeconds, now: now)
                else { return nil }
                return (hour, key)
            }
        }
        let result = await node.onThread(node.messageThread) { database throws(StoreError) in
            try database.claims(wanted)
        }
        noteFailure(result)
        return node.state.withLock { state in
            switch result {
            case .success(let claims): state.share.claimsRead(claims, at: .now)
            case .failure: state.share.readFailed(at: .now)
            }
        }
    }

    /// Without these reads and writes a node takes over no message, while its store and its lease may work.
    private func noteFailure<Success>(_ result: Result<Success, StoreError>) {
        if case .failure(let error) = result { node.errors.log("failed to share messages with other nodes", reason: error.message) }
    }

    /// - Returns: how to handle the message now.
    private func begin(_ key: MessageKey, takesOver: Bool) -> MessageTurn {
        node.state.withLock { state in
            guard var entry = state.entries[key] else {
                state.share.abandon(key)
                return .none
            }
            if !takesOver, entry.outcome == nil { node.counters.add(.clusterTaken) }
            entry.open = entry.turn.count
            (entry.outcome, entry.isAbandoned, entry.takesOver) = (nil, false, takesOver)
            state.entries[key] = entry
            return entry.turn
        }
    }
}
