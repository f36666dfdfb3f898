import Cluster
import Core

/// The invariants, checked at each event that could violate them.
extension ClusterSimulation {
    mutating func violate(_ kind: Violation.Kind, _ text: String) {
        violations.append(Violation(kind: kind, at: now, text: text))
    }

    private var database: SimulatedDatabase { servers[primary].database }

    /// After the last fault, each partition has an owner that may post within this time: a lease (5 s) after the heartbeat in which its last renewal
    /// was read, the heartbeat that ends it, the heartbeat in which the next owner reads that (1 s each), and 1 s for transactions. A heartbeat that
    /// is executed after its node has died renews the lease once more; it counts as a fault at that time.
    static let longestGap: Milliseconds = 9000

    mutating func checkEffects(of number: Int) {
        if database.effects[number, default: 0] > 1 { violate(.effectTwice, "message \(number)") }
    }

    mutating func checkAcknowledged(_ number: Int) {
        let message = messages[number].message
        switch message.kind {
        case .registration:
            if database.effects[number] == nil { violate(.acknowledgedIsLost, "registration \(number)") }
        case .request:
            if database.effects[number] == nil { violate(.acknowledgedIsLost, "request \(number)") }
        case .query, .junk: break
        }
    }

    /// After a failover.
    mutating func checkAcknowledged() {
        for number in messages.indices where messages[number].isAcknowledged { checkAcknowledged(number) }
    }

    /// Before a post. A row may be posted again only
    /// - after a post that failed, that broke off, or that was not answered within gorush's timeout;
    /// - by a later ownership of the partition, where the device shows it once, or a bounded time after the first mark;
    /// and never when it was recorded as accepted before it was marked.
    mutating func checkPost(_ index: Int, _ row: SimulatedNode.Row) {
        if let acceptedAt = database.accepted[row.id], acceptedAt < row.markSentAt {
            violate(.doubled, "row \(row.id) by node \(index), recorded at \(acceptedAt)")
        }
        for earlier in posts[row.id] ?? [] where !earlier.hasFailed {
            let isLaterOwner = (row.mark?.epoch ?? 0) > (earlier.mark?.epoch ?? 0)
            let isHeldLongEnough =
                Self.showsOnce(row.device) || database.firstMarks[row.id].map { now >= $0 + Self.unknownHold } ?? false
            guard isLaterOwner, isHeldLongEnough else {
                violate(.doubled, "row \(row.id) by node \(index); node \(earlier.node) posted it at \(earlier.startedAt)")
                continue
            }
            if earlier.isAccepted { figures.repeatedPosts += 1 }
        }
        // Rows of the device that were committed before this row's transaction began come first.
        guard let own = database.outbox[row.id] else { return }
        for other in database.outbox.values where other.device == row.device && other.committedAt < own.began && other.id != row.id {
            violate(.order, "row \(row.id) of device \(row.device) before row \(other.id)")
        }
    }

    /// Of a row that waits because of a former owner's mark.
    mutating func checkHold(_ row: SimulatedNode.Row) {
        guard let markedAt = database.outbox[row.id]?.markedAt, now > markedAt + Self.unknownHold else { return }
        violate(.heldTooLong, "row \(row.id), marked at \(markedAt)")
    }

    mutating func checkPartitions() {
        var healthySince: Milliseconds = .max
        for node in nodes where node.isRunning && !node.member.isDraining { healthySince = min(healthySince, node.healthySince) }
        let calmSince = max(lastFault, databaseHealthySince)
        for (partition, row) in database.partitions.enumerated() {
            if let index = nodes.firstIndex(where: { $0.member.id == row.owner }), nodes[index].isRunning, nodes[index].pausedUntil <= now,
                nodes[index].member.lease.isValid(at: clock(index))
            {
                unownedSince[partition] = nil
                continue
            }
            guard let since = unownedSince[partition] else {
                unownedSince[partition] = now
                continue
            }
            let gap = now - max(since, calmSince)
            guard healthySince < now - Self.longestGap else { continue }
            figures.longestGap = max(figures.longestGap, gap)
            if gap > Self.longestGap { violate(.unowned, "partition \(partition) since \(since)") }
        }
    }

    mutating func checkEnd() {
        for record in messages { checkAnswer(record) }
        checkAcknowledged()
        // Messages that were repeated at the end may still be in progress.
        let recent = Set(database.outbox.values.filter { $0.committedAt > now - 20_000 }.map(\.message))
        for row in database.outbox.values where !recent.contains(row.message) {
            violate(.notificationIsLost, "row \(row.id) of message \(row.message) still waits")
        }
        for (number, count) in database.effects {
            if count > 1 { violate(.effectTwice, "message \(number)") }
            guard messages[number].message.kind == .request else { continue }
            if !database.acceptedMessages.contains(number), !recent.contains(number) { violate(.notificationIsLost, "message \(number)") }
        }
        for (id, _) in database.accepted where !(posts[id] ?? []).contains(where: \.isAccepted) {
            violate(.notificationIsLost, "row \(id) is recorded as accepted, and was not")
        }
        var counts: [Int: Int] = [:]
        for row in database.partitions {
            guard let owner = nodes.firstIndex(where: { $0.member.id == row.owner && $0.isRunning }) else {
                violate(.unowned, "at the end")
                continue
            }
            counts[owner, default: 0] += 1
        }
        let shares = nodes.indices.filter { nodes[$0].isRunning }.map { counts[$0] ?? 0 }
        if let least = shares.min(), let most = shares.max(), most - least > 1 { violate(.unfair, "\(shares)") }
    }

    private mutating func checkAnswer(_ record: MessageRecord) {
        let number = record.message.number
        guard let first = record.hearings.first?.at else { return }
        if record.message.kind == .junk { return checkJunk(record, first) }
        if record.isRefused { return }
        // A process that runs until the end has answered each message it received, or has seen the answer.
        guard let answeredAt = record.answeredAt else {
            if record.hearings.contains(where: {
                $0.at < now - 8000 && nodes[$0.node].process == $0.process && nodes[$0.node].isRunning
            }) {
                violate(.unanswered, "\(record.message.kind) \(number), heard \(record.hearings)")
            }
            return
        }
        // In time, by the undisturbed node that ranks first.
        let window = (first - 2000)...(first + 4500)
        guard !databaseDisturbances.contains(where: { $0.from <= window.upperBound && $0.to >= window.lowerBound }) else { return }
        let ranks = record.hearings.filter { $0.at < first + 200 && !isDisturbed($0.node, window) }.map(\.rank)
        guard let rank = ranks.min() else { return }
        figures.checkedTimely += 1
        let limit: Milliseconds =
            switch record.message.kind {
            case .query, .junk: 700 * rank + 500
            case .registration: 700 + 700 * max(rank, 1) + 500
            case .request: 2000 + 700 * max(rank, 1) + 500
            }
        if answeredAt - first > limit {
            violate(.answeredLate, "\(record.message.kind) \(number) after \(answeredAt - first) ms, heard \(record.hearings)")
        }
    }

    /// Invalid messages received by healthy nodes that know each other were handled by one of them.
    private mutating func checkJunk(_ record: MessageRecord, _ first: Milliseconds) {
        guard !record.isRepeated, record.hearings.contains(where: { $0.rank == 0 }) else { return }
        let window = (first - 9000)...(first + 3500)
        guard !databaseDisturbances.contains(where: { $0.from <= window.upperBound && $0.to >= window.lowerBound }),
            !nodes.indices.contains(where: { isDisturbed($0, window) }), !rankChanges.contains(where: { window.contains($0) })
        else { return }
        figures.checkedJunk += 1
        if record.handledCount != 1 { violate(.junkHandledTwice, "message \(record.message.number): \(record.handledCount) times") }
    }

    private func isDisturbed(_ index: Int, _ window: ClosedRange<Milliseconds>) -> Bool {
        disturbances[index].contains { $0.from <= window.upperBound && $0.to >= window.lowerBound }
    }
}
