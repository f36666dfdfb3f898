import Cluster
import Core
import TestSupport

/// The driver: carries out the state machines' actions. The numbers in comments refer to the rules in the article.
extension ClusterSimulation {
    /// The node's monotonic clock, which includes the time for which it is stopped.
    func clock(_ index: Int) -> Instant {
        switch plan.mutation {
        case .clockWithoutSuspension: .at(now - nodes[index].suspended)
        case .wallClock: .at(now + nodes[index].clockError)
        default: .at(now)
        }
    }

    /// Does everything that is due.
    mutating func act(_ index: Int) {
        let time = clock(index)
        if let heartbeat = nodes[index].member.heartbeat(at: time) { send(index, .heartbeat(heartbeat)) }
        perform(index, nodes[index].share.advance(to: .at(now)))
        if let row = nodes[index].share.log.row(at: .at(now)) { send(index, .writeFinished(row)) }
        if nodes[index].nextPoll <= now { poll(index) }
        if nodes[index].nextMaintenance <= now, let mark = nodes[index].member.maintenanceMark(at: time) {
            nodes[index].nextMaintenance = now + 1000
            send(index, .maintain(mark))
        }
        deliver(index)
        answerAwaiting(index)
        scheduleWake(index)
    }

    private mutating func scheduleWake(_ index: Int) {
        var next = nodes[index].nextPoll
        if let time = nodes[index].member.nextWakeUp { next = min(next, now + max(0, (time - clock(index)).milliseconds)) }
        if let time = nodes[index].share.nextWakeUp { next = min(next, time.sinceEpoch.milliseconds) }
        if let time = nodes[index].share.log.nextWakeUp { next = min(next, time.sinceEpoch.milliseconds) }
        if let time = nodes[index].awaiting.values.min() { next = min(next, time) }
        next = max(next, now + 1)
        if let wakeAt = nodes[index].wakeAt, wakeAt <= next, wakeAt > now { return }
        nodes[index].wakeAt = next
        events.add(.wake(node: index, process: nodes[index].process), at: next)
    }

    mutating func receive(_ index: Int, _ request: SimulatedDatabase.Request, _ reply: SimulatedDatabase.Reply) {
        if case .unknown = reply { nodes[index].server = chance(50) ? nil : nodes[index].server }
        switch request {
        case .heartbeat: heartbeatEnded(index, reply)
        case .handle(let message, _, _, _): handleEnded(index, message, reply)
        case .writeFinished:
            if case .done = reply {
                nodes[index].share.log.wrote(isCommitted: true, at: .at(now))
            } else {
                nodes[index].share.log.wrote(isCommitted: false, at: .at(now))
            }
        case .readFinished:
            guard case .finishedRows(let rows) = reply else { return perform(index, nodes[index].share.readFailed(at: .at(now))) }
            for row in rows {
                nodes[index].finishedCursors[row.node] = max(nodes[index].finishedCursors[row.node] ?? 0, row.sequence)
                if plan.mutation != .ignoresFinishedRows { nodes[index].share.finishedElsewhere(row.prefixes) }
            }
            perform(index, nodes[index].share.finishedRowsRead())
        case .lookUpClaims:
            guard case .claims(let claims) = reply else { return perform(index, nodes[index].share.readFailed(at: .at(now))) }
            var found: [MessageKey: Claim] = [:]
            for (number, claim) in claims { found[messages[number].message.key] = claim }
            perform(index, nodes[index].share.claimsRead(found, at: .at(now)))
        case .readRows:
            if case .rows(let rows, let owned) = reply { learn(index, rows, owned) }
        case .mark(let id, let mark): markEnded(index, id, mark, reply)
        case .recordAccepted(let id, _): recordEnded(index, id, reply)
        case .maintain: break
        case .storedAnswer(let number): storedAnswerRead(index, number, reply)
        case .takeOverAnswer(let number, _):
            guard case .answer(let isAccepted) = reply else {
                return nodes[index].share.handled(messages[number].message.key, .failed, at: .at(now))
            }
            figures.answeredForOthers += 1
            publish(number, isSuccess: isAccepted || messages[number].message.kind == .registration)
            nodes[index].share.answered(messages[number].message.key)
        }
    }

    private mutating func heartbeatEnded(_ index: Int, _ reply: SimulatedDatabase.Reply) {
        guard case .heartbeat(var view, _, _, _) = reply else { return nodes[index].member.heartbeatFailed() }
        if plan.mutation == .ignoresOlderRules { for lease in view.leases.indices { view.leases[lease].hashingVersion = .max } }
        for change in nodes[index].member.heartbeatCommitted(view, at: clock(index)) {
            switch change {
            case .gained:
                nodes[index].nextPoll = now
            case .stop(let partition): nodes[index].stopping.insert(partition)
            case .resume(let partition): nodes[index].stopping.remove(partition)
            case .lost(let partition):
                nodes[index].stopping.remove(partition)
                nodes[index].rows = nodes[index].rows.filter { $0.value.partition != partition || !$0.value.isIdle }
            case .ended:
                // A new membership of the same process. Unanswered posts continue; their outcomes are recorded.
                nodes[index].stopping = []
                nodes[index].rows = nodes[index].rows.filter { !$0.value.isIdle }
                let isDraining = nodes[index].member.isDraining
                let id = NodeID(rawValue: random.next())
                nodes[index].member = ClusterMember(id, name: "node", configuration: configuration, at: clock(index))
                nodes[index].member.isDraining = isDraining
            }
        }
    }

    // MARK: Messages

    mutating func send(_ message: SimulatedMessage) {
        for index in nodes.indices where !chance(plan.hearingLoss) {
            events.add(.hear(node: index, message, isRepeated: false), at: now + random(5...90))
        }
        // The store node of the message network delivers it again.
        if chance(plan.repetitions) {
            messages[message.number].isRepeated = true
            events.add(.hear(node: random(0...(plan.nodeCount - 1)), message, isRepeated: true), at: now + random(1000...60_000))
        }
    }

    mutating func hear(_ index: Int, _ message: SimulatedMessage, isRepeated: Bool) {
        guard nodes[index].deafUntil <= now || isRepeated else { return }
        let rank = nodes[index].member.rank(of: message.key)
        switch nodes[index].share.heard(message.key, rank: rank, at: .at(now)) {
        case .handle:
            messages[message.number].hearings.append((index, nodes[index].process, now, rank))
            handle(index, message)
            act(index)
        case .wait:
            messages[message.number].hearings.append((index, nodes[index].process, now, rank))
            scheduleWake(index)
        case .duplicate, .leftToOthers: break
        }
    }

    private mutating func perform(_ index: Int, _ actions: [MessageShare.Action]) {
        for action in actions {
            switch action {
            case .readFinishedRows: send(index, .readFinished(nodes[index].finishedCursors, except: nodes[index].processID))
            case .lookUpClaims(let keys): send(index, .lookUpClaims(keys.compactMap { numbers[$0] }))
            case .handle(let key):
                guard let number = numbers[key] else { continue }
                let message = messages[number].message
                if plan.mutation == .queriesByRankZeroOnly, message.kind == .query {
                    nodes[index].share.abandon(key)
                    continue
                }
                figures.takenByOtherRank += 1
                handle(index, message)
            case .repeatTransaction(let key):
                if let number = numbers[key] { commit(index, messages[number].message) }
            case .takeOverAnswer(let key):
                guard let number = numbers[key] else { continue }
                if plan.mutation == .leavesClaimedMessages {
                    nodes[index].share.abandon(key)
                    continue
                }
                if plan.mutation == .answersFromReads {
                    answerStored(index, number)
                } else {
                    send(index, .takeOverAnswer(number, by: nodes[index].processID))
                }
            case .answerFailure(let key):
                if let number = numbers[key] { publish(number, isSuccess: false) }
            }
        }
    }

    /// Decrypts and decides. Messages without a change end here.
    private mutating func handle(_ index: Int, _ message: SimulatedMessage) {
        messages[message.number].handledCount += 1
        switch message.kind {
        case .junk: nodes[index].share.handled(message.key, .withoutEffect, at: .at(now))
        case .query:
            figures.queries += 1
            publish(message.number, isSuccess: true)
            nodes[index].share.handled(message.key, .withoutEffect, at: .at(now))
        case .registration, .request: commit(index, message)
        }
    }

    private mutating func commit(_ index: Int, _ message: SimulatedMessage) {
        let partition = Int(RendezvousHash.mix(UInt64(message.device)) % UInt64(configuration.partitionCount))
        var mark: DeliveryMark?
        // Posted at once, unless the device has another row in progress.
        if message.kind == .request, !nodes[index].rows.values.contains(where: { $0.device == message.device }),
            case .markAndPost(let own) = nodes[index].member.verdict(on: nil, in: partition, at: clock(index))
        {
            mark = own
        }
        send(index, .handle(message, by: nodes[index].processID, partition: partition, mark: mark))
        if mark != nil, nodes[index].pauseAtMark > 0 { pause(index, nodes[index].pauseAtMark) }
    }

    private mutating func handleEnded(_ index: Int, _ message: SimulatedMessage, _ reply: SimulatedDatabase.Reply) {
        var reply = reply
        if case .unknown = reply {
            figures.unknownCommits += 1
            if plan.mutation == .trustsLostCommits { reply = .stored(row: nil, isNew: true) }
        }
        switch reply {
        case .stored(let row, _):
            nodes[index].share.handled(message.key, .committed, at: .at(now))
            if let row { adopt(index, row) }
            if message.kind == .registration {
                publish(message.number, isSuccess: true)
                nodes[index].share.answered(message.key)
            } else {
                // Until gorush has accepted it, or for 2 s.
                nodes[index].awaiting[message.number] = now + 2000
            }
        case .claimed(let kind): nodes[index].share.handled(message.key, .claimedElsewhere(kind), at: .at(now))
        case .refused: nodes[index].share.handled(message.key, .withoutEffect, at: .at(now))
        case .failed: nodes[index].share.handled(message.key, .failed, at: .at(now))
        default: nodes[index].share.handled(message.key, .unknown, at: .at(now))
        }
    }

    private mutating func answerAwaiting(_ index: Int) {
        for (number, deadline) in nodes[index].awaiting.sorted(by: { $0.key < $1.key }) where deadline <= now {
            nodes[index].awaiting[number] = nil
            answerStored(index, number)
        }
    }

    private mutating func answerStored(_ index: Int, _ number: Int) {
        if messages[number].message.kind == .request {
            send(index, .storedAnswer(number))
        } else {
            publish(number, isSuccess: true)
            nodes[index].share.answered(messages[number].message.key)
        }
    }

    private mutating func storedAnswerRead(_ index: Int, _ number: Int, _ reply: SimulatedDatabase.Reply) {
        if case .answer(true) = reply {
            publish(number, isSuccess: true)
        } else {
            // It waits in the outbox.
            publish(number, isSuccess: false)
        }
        nodes[index].share.answered(messages[number].message.key)
    }

    mutating func publish(_ number: Int, isSuccess: Bool) {
        figures.answers += 1
        if messages[number].answeredAt == nil { messages[number].answeredAt = now }
        guard isSuccess else { return }
        messages[number].isAcknowledged = true
        checkAcknowledged(number)
    }
}
