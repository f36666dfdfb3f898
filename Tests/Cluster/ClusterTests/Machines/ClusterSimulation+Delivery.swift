@testable import Cluster
@testable import Delivery
import Core
import TestSupport

/// The driver's outbox, and gorush.
extension ClusterSimulation {
    mutating func poll(_ index: Int) {
        nodes[index].nextPoll = now + 1000
        var owned: [PartitionNumber: UInt64] = [:]
        for partition in 0..<configuration.partitionCount {
            if case .markAndPost(let mark) = nodes[index].member.verdict(on: nil, in: partition, at: clock(index)) {
                owned[partition] = mark.epoch
            }
        }
        guard !owned.isEmpty else { return }
        send(index, .readRows(owned, beyond: plan.mutation == .readsBeyondLastID ? nodes[index].lastRowID : 0))
    }

    /// Handles rows that were read from partitions owned with these epochs.
    mutating func learn(_ index: Int, _ rows: [SimulatedDatabase.OutboxRow], _ owned: [PartitionNumber: UInt64]) {
        var current: Set<PartitionNumber> = []
        for (partition, epoch) in owned {
            if nodes[index].member.mayPost(
                under: DeliveryMark(owner: nodes[index].member.id, epoch: epoch), in: partition, at: clock(index))
            {
                current.insert(partition)
            }
        }
        let present = Set(rows.map(\.id))
        // The former owner has recorded their outcome.
        if plan.mutation != .readsBeyondLastID {
            for row in nodes[index].rows.values where row.isIdle && current.contains(row.partition) && !present.contains(row.id) {
                nodes[index].rows[row.id] = nil
            }
        }
        for row in rows where current.contains(row.partition) {
            nodes[index].lastRowID = max(nodes[index].lastRowID, row.id)
            adopt(index, row)
        }
    }

    mutating func adopt(_ index: Int, _ row: SimulatedDatabase.OutboxRow) {
        guard nodes[index].rows[row.id] == nil, !nodes[index].recorded.contains(row.id) else { return }
        switch nodes[index].member.verdict(on: nil, in: row.partition, at: clock(index)) {
        case .notOwner: return
        default: break
        }
        nodes[index].rows[row.id] = SimulatedNode.Row(
            id: row.id, message: row.message, device: row.device, partition: row.partition, mark: row.mark, heldUntil: hold(index, row),
            markSentAt: row.committedAt)
    }

    private func hold(_ index: Int, _ row: SimulatedDatabase.OutboxRow) -> Timestamp? {
        guard let markedAt = row.markedAt, let mark = row.mark,
            case .markAndRepeat = nodes[index].member.verdict(on: mark, in: row.partition, at: clock(index))
        else { return nil }
        return UnknownOutcome(hold: plan.mutation == .repeatsMarkedRowsAtOnce ? .zero : .milliseconds(Self.unknownHold)).end(
            markedAt: .at(plan.mutation == .holdsFromTakeOver ? now : markedAt), clock: .at(now), now: timestamp(index))
    }

    /// The node's clock.
    private func timestamp(_ index: Int) -> Timestamp {
        Timestamp(rawValue: 0) + clock(index).sinceEpoch
    }

    /// Posts the rows that may be posted: for each device the first one, one at a time.
    mutating func deliver(_ index: Int) {
        var first: [Int: Int] = [:]
        var blocked: Set<Int> = []
        let time = clock(index)
        // Sorted: code that draws random numbers must not depend on the order of a dictionary, which differs between processes.
        for row in nodes[index].rows.values.sorted(by: { $0.id < $1.id }) {
            if case .recording(let sendAt?) = row.state, sendAt <= now, let mark = row.mark {
                nodes[index].rows[row.id]?.state = .recording(sendAt: nil)
                send(index, .recordAccepted(row.id, mark))
            }
            if !row.isIdle { blocked.insert(row.device) }
            first[row.device] = min(first[row.device] ?? .max, row.id)
        }
        for (device, id) in first.sorted(by: { $0.key < $1.key }) where !blocked.contains(device) {
            guard let row = nodes[index].rows[id], row.retryAt <= now else { continue }
            switch nodes[index].member.verdict(on: row.mark, in: row.partition, at: time) {
            case .markAndPost(let mark):
                nodes[index].rows[id]?.markSentAt = now
                if plan.mutation == .postsWithoutMark {
                    nodes[index].rows[id]?.mark = mark
                    post(index, id)
                } else {
                    nodes[index].rows[id]?.state = .marking
                    send(index, .mark(id, mark))
                    if nodes[index].pauseAtMark > 0 { pause(index, nodes[index].pauseAtMark) }
                }
            case .markAndRepeat(let mark):
                guard let heldUntil = row.heldUntil else {
                    // Its own, from an earlier ownership: read anew.
                    nodes[index].rows[id] = nil
                    nodes[index].nextPoll = min(nodes[index].nextPoll, now + 50)
                    continue
                }
                guard
                    UnknownOutcome.wait(until: heldUntil, showsOnce: Self.showsOnce(device), now: timestamp(index)) == nil
                else {
                    checkHold(row)
                    continue
                }
                nodes[index].rows[id]?.markSentAt = now
                nodes[index].rows[id]?.state = .marking
                send(index, .mark(id, mark))
            case .inProgress: post(index, id)
            case .notOwner: break
            }
        }
        for partition in nodes[index].stopping.sorted() {
            let isSettled = !nodes[index].rows.values.contains { $0.partition == partition && !$0.isIdle }
            if isSettled || plan.mutation == .releasesUnsettled { nodes[index].member.settled(partition) }
        }
    }

    mutating func markEnded(_ index: Int, _ id: Int, _ mark: DeliveryMark, _ reply: SimulatedDatabase.Reply) {
        guard let row = nodes[index].rows[id], case .marking = row.state else { return }
        nodes[index].rows[id]?.state = .idle
        switch reply {
        case .done(true):
            nodes[index].rows[id]?.mark = mark
            post(index, id)
        case .done(false):
            // There is an earlier row of the device, a recorded outcome, or another owner: the next read shows which.
            nodes[index].rows[id]?.retryAt = now + 100
            nodes[index].nextPoll = min(nodes[index].nextPoll, now + 50)
        default: nodes[index].rows[id]?.retryAt = now + 250
        }
    }

    private mutating func post(_ index: Int, _ id: Int) {
        guard let row = nodes[index].rows[id] else { return }
        if plan.mutation != .ignoresLease {
            guard let mark = row.mark, nodes[index].member.mayPost(under: mark, in: row.partition, at: clock(index)) else { return }
        }
        nodes[index].rows[id]?.state = .posting
        lastPost += 1
        figures.posts += 1
        checkPost(index, row)
        postPlaces[lastPost] = (id, posts[id]?.count ?? 0)
        posts[id, default: []].append(Post(node: index, process: nodes[index].process, mark: row.mark, startedAt: now))
        events.add(.postArrives(node: index, process: nodes[index].process, row: id, post: lastPost), at: now + random(1...40))
        if nodes[index].pauseAtPost > 0 { pause(index, nodes[index].pauseAtPost) }
    }

    /// The post arrives at gorush.
    mutating func postArrives(_ index: Int, _ process: Int, _ row: Int, _ post: Int) {
        guard let place = postPlaces[post]?.place, let startedAt = posts[row]?[place].startedAt else { return }
        let timeout = startedAt + Self.gorushTimeout
        let isTroubled = now < gorushTroubleUntil || plan.isGorushTroubled && now < plan.faultsEnd
        let fate = isTroubled ? random(0...9) : 5
        switch fate {
        case 0, 1:
            // Refused: 503.
            events.add(.postEnds(node: index, process: process, row: row, post: post, isAccepted: false), at: now + random(5...300))
        case 2:
            // Accepted, and the connection breaks before the answer.
            posts[row]?[place].isAccepted = true
            events.add(.postEnds(node: index, process: process, row: row, post: post, isAccepted: false), at: now + random(5...3000))
        case 3:
            // Accepted, and answered late or never.
            posts[row]?[place].isAccepted = true
            let end = now + random(1000...12_000)
            events.add(.postEnds(node: index, process: process, row: row, post: post, isAccepted: end < timeout), at: min(end, timeout))
        default:
            posts[row]?[place].isAccepted = true
            events.add(.postEnds(node: index, process: process, row: row, post: post, isAccepted: true), at: now + random(5...150))
        }
    }

    mutating func postEnded(_ index: Int, _ id: Int, _ post: Int, isAccepted: Bool) {
        if !isAccepted, let place = postPlaces[post]?.place { posts[id]?[place].hasFailed = true }
        guard let row = nodes[index].rows[id], case .posting = row.state else { return }
        if isAccepted {
            nodes[index].rows[id]?.state = .recording(sendAt: now)
            return
        }
        nodes[index].rows[id]?.state = .idle
        let pause = random(300...1500)
        nodes[index].rows[id]?.retryAt = now + pause
        forgetIfForeign(index, row)
    }

    mutating func recordEnded(_ index: Int, _ id: Int, _ reply: SimulatedDatabase.Reply) {
        guard let row = nodes[index].rows[id] else { return }
        switch reply {
        case .done(true):
            nodes[index].rows[id] = nil
            nodes[index].recorded.insert(id)
            // The request is answered as soon as possible.
            if nodes[index].awaiting[row.message] != nil { nodes[index].awaiting[row.message] = now }
        case .done(false):
            // A later owner has taken it over.
            nodes[index].rows[id] = nil
        default: nodes[index].rows[id]?.state = .recording(sendAt: now + 250)
        }
    }

    private mutating func forgetIfForeign(_ index: Int, _ row: SimulatedNode.Row) {
        switch nodes[index].member.verdict(on: row.mark, in: row.partition, at: clock(index)) {
        case .notOwner where !nodes[index].stopping.contains(row.partition): nodes[index].rows[row.id] = nil
        default: break
        }
    }
}
