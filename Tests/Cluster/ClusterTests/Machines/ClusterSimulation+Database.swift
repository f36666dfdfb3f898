@testable import Cluster
import TestSupport

extension ClusterSimulation {
    /// Sends a request to the server that the node is connected to. Its reply may be lost, and it may be executed long after the node's timeout.
    mutating func send(_ index: Int, _ request: SimulatedDatabase.Request) {
        lastRequest += 1
        let number = lastRequest
        nodes[index].outstanding.insert(number)
        let process = nodes[index].process
        guard nodes[index].cutUntil <= now, let server = connect(index) else {
            events.add(.reply(node: index, process: process, request: number, request, .failed), at: now + random(2...20))
            return
        }
        if chance(perMille: plan.lineLoss) {
            lose(index, number, request)
            // Sometimes it arrives late: a lease may thus be renewed after its holder has died.
            if chance(50) {
                let late = now + random(500...6000)
                lastFault = max(lastFault, late)
                events.add(
                    .arrive(
                        server: server, node: index, process: process, request: number, request, row: 0, began: 0, isDelayed: false),
                    at: late)
            }
            return
        }
        events.add(
            .arrive(server: server, node: index, process: process, request: number, request, row: 0, began: 0, isDelayed: false),
            at: now + random(2...20))
    }

    /// No reply will arrive: the driver's timeout.
    private mutating func lose(_ index: Int, _ number: Int, _ request: SimulatedDatabase.Request) {
        disturb(index, until: now + 3500)
        events.add(.reply(node: index, process: nodes[index].process, request: number, request, .unknown), at: now + 2000)
    }

    /// The server of the node's connection, or of a new one. Nodes that know the new primary refuse a server that was replaced.
    private mutating func connect(_ index: Int) -> Int? {
        if let server = nodes[index].server, answers(server) { return server }
        nodes[index].server = nil
        let candidates = servers.indices.filter { answers($0) }
        guard !candidates.isEmpty else { return nil }
        let server = candidates[random(0...(candidates.count - 1))]
        let refusal = nodes[index].primaryCheck.check(systemIdentifier: 7, timeline: servers[server].timeline)
        guard refusal == nil || plan.mutation == .trustsOldPrimary else { return nil }
        nodes[index].server = server
        return server
    }

    private func answers(_ server: Int) -> Bool { servers[server].answersFrom <= now && now < servers[server].answersUntil }

    mutating func arrive(
        at server: Int, from index: Int, _ process: Int, _ number: Int, _ request: SimulatedDatabase.Request, row: Int,
        began: Milliseconds, isDelayed: Bool
    ) {
        let isCurrent = nodes[index].process == process && nodes[index].outstanding.contains(number)
        guard answers(server) else {
            // The connection broke.
            if isCurrent {
                disturb(index, until: now + 2500)
                events.add(.reply(node: index, process: process, request: number, request, .unknown), at: now + random(5...50))
            }
            return
        }
        var (row, began) = (row, began)
        if case .handle = request, !isDelayed {
            // Ids are taken before the commit: transactions do not commit in the order of their ids.
            lastRow += 1
            (row, began) = (lastRow, now)
            if chance(15) {
                events.add(
                    .arrive(
                        server: server, node: index, process: process, request: number, request, row: row, began: began, isDelayed: true),
                    at: now + random(5...80))
                return
            }
        }
        if server == primary, failoverAt != nil, !request.isRead, chance(60) {
            // Committed while the primary is about to be replaced: it may have reached the standby, and the reply is lost.
            if chance(60) {
                doomed.append((request, row, began))
            } else {
                _ = carryOut(request, on: server, row: row, began: began)
            }
            if isCurrent { lose(index, number, request) }
            return
        }
        var reply = carryOut(request, on: server, row: row, began: began)
        if server != primary, !request.isRead, plan.mutation != .trustsOldPrimary {
            // Its standby has left: the commit waits, until the wait is cancelled with a warning.
            reply = .unknown
            if isCurrent, chance(40) { nodes[index].server = nil }
        }
        guard isCurrent else { return }
        if nodes[index].cutUntil > now || chance(perMille: plan.lineLoss) { return lose(index, number, request) }
        events.add(.reply(node: index, process: process, request: number, request, reply), at: now + random(2...20))
    }

    private mutating func carryOut(
        _ request: SimulatedDatabase.Request, on server: Int, row: Int, began: Milliseconds
    ) -> SimulatedDatabase.Reply {
        let reply = servers[server].database.execute(
            request, row: row, began: began, at: now, clock: now + servers[server].clockError)
        guard server == primary else { return reply }
        switch (request, reply) {
        case (.heartbeat(let heartbeat), .heartbeat(_, let endedLeases, let takes, let releases)):
            figures.endedLeases += endedLeases
            figures.takeovers += takes
            figures.handovers += releases
            _ = heartbeat
        case (.handle(let message, let id, let partition, _), .stored(_, isNew: true)):
            figures.committed += 1
            checkEffects(of: message.number)
            if let owner = servers[server].database.partitions[partition].owner, owner != id, message.kind == .request, chance(80) {
                events.add(.notify(owner), at: now + random(5...50))
            }
        case (.handle(let message, _, _, _), .refused): messages[message.number].isRefused = true
        case (.maintain, .done(true)): figures.maintenance += 1
        case (.recordAccepted, .done(false)): figures.fencedOutcomes += 1
        default: break
        }
        return reply
    }
}
