import Core

/// Handles accounts that storage servers redirect to another swarm before the map does.
///
///     errcode 6, notify.monitor_ended ──▶ the map is requested
///                                     └─▶ the account gets a place in the named swarm, with its servers in the map, or else those of the hint
///
/// One server's claim removes nothing: the account also stays in the swarm of the map. The server that sent errcode 6 is asked again, as after every
/// errcode 6. Only servers of the map name others, and none at a local address, unless the map has such servers too.
extension MonitorStateMachine {
    /// Limits of swarms and servers named in hints.
    enum NamedLimits {
        static let swarms = 64
        static let swarmsPerSource = 4
        static let serversPerSwarm = 48
        static let servers = 256
    }

    /// `notify.monitor_ended` was received: the server has stopped monitoring the account.
    ///
    /// - Returns: false if the connection was not asked for the account; then nothing changes.
    mutating func ended(_ account: AccountID, hint: SwarmHint?, by connection: ConnectionNumber, at now: Instant) -> Bool {
        guard let index = connections[connection], case .connected = servers[index].state else { return false }
        let askedThrough = servers[index].askedThrough
        var sequences: [UInt64] = []
        _ = subscriptions.contains(account, inSwarm: servers[index].swarm) { first, last in
            if first <= askedThrough { sequences.append(last <= askedThrough ? last : first) }
            return false
        }
        sequences.removeAll { servers[index].refused[$0] != nil }
        guard !sequences.isEmpty else {
            // The map has moved the account already.
            guard servers[index].lateEndings > 0, subscriptions.contains(account) else { return false }
            servers[index].lateEndings -= 1
            return true
        }
        for sequence in sequences { refused(sequence, .wrongSwarm, by: index, at: now) }
        if let retryAt = servers[index].retryAt { wakeServer(index, at: retryAt) }
        if let hint { move(account, to: hint, by: index, at: now) }
        return true
    }

    private mutating func wakeServer(_ index: Int, at time: Instant) {
        servers[index].wakeUp = servers[index].wakeUp.map { min($0, time) } ?? time
        wake(at: time)
    }

    /// Expects a late notice from each connected server for accounts that the map has moved.
    mutating func allowLateEndings(_ count: Int) {
        for index in servers.indices where servers[index].connection != nil {
            servers[index].lateEndings = min(servers[index].lateEndings + count, subscriptions.count)
        }
    }

    /// Also monitors the account in the swarm named by a server, at most once per account and ``Configuration/moveInterval``. Requests for several
    /// accounts are combined.
    mutating func move(_ account: AccountID, to hint: SwarmHint, by source: Int, at now: Instant) {
        guard let swarm = swarm(named: hint, by: source, at: now), swarm != servers[source].swarm else { return }
        let until = now + configuration.moveLifetime
        if swarms[swarm].sources != nil { swarms[swarm].endsAt = until }
        switch subscriptions.addPlace(
            of: account, inSwarm: swarm, source: source, at: now, until: until, interval: configuration.moveInterval)
        {
        case .none: break
        case .tooEarly(let due):
            heldMoves[account] = (hint, source, due)
            wakeMoves(at: due)
        case .made(let slots, let left):
            for one in left { leave(one) }
            for slot in slots { join(swarm, slot) }
            wakeMoves(at: until)
            swarmsToAsk.insert(swarm)
            askAt = askAt ?? now + configuration.moveGathering
            if let askAt { wake(at: askAt) }
        }
    }

    private mutating func wakeMoves(at time: Instant) {
        movesAt = movesAt.map { min($0, time) } ?? time
        wake(at: time)
    }

    /// The index of the swarm named in a hint, which is added if it is not in the map; nil beyond ``NamedLimits``, or without servers.
    private mutating func swarm(named hint: SwarmHint, by source: Int, at now: Instant) -> Int? {
        if let known = swarmIndex[hint.swarm] { return known }
        if let named = namedIndex[hint.swarm] {
            if !servers[source].isNamed, swarms[named].sources?.insert(source).inserted == true {
                addServers(hint.servers, to: named, at: now)
            }
            return named
        }
        // Servers that hints name must not name further ones: each would multiply the connections.
        guard !servers[source].isNamed else { return nil }
        let named = namedIndex.values.filter { swarms[$0].sources?.contains(source) ?? false }
        guard !hint.servers.isEmpty, namedIndex.count < NamedLimits.swarms, named.count < NamedLimits.swarmsPerSource else { return nil }
        let made = Swarm(id: hint.swarm, sources: [source], endsAt: now + configuration.moveLifetime)
        // Reuses the entry of an ended swarm, which has no members or servers, and is in no index.
        let index = swarms.indices.first { swarms[$0].sources?.isEmpty ?? false } ?? swarms.endIndex
        if index == swarms.endIndex { swarms.append(made) } else { swarms[index] = made }
        namedIndex[hint.swarm] = index
        addServers(hint.servers, to: index, at: now)
        guard !swarms[index].servers.isEmpty else {
            endNamedSwarm(index)
            return nil
        }
        return index
    }

    private mutating func addServers(_ list: [StorageServer], to swarm: Int, at now: Instant) {
        var room = min(
            NamedLimits.serversPerSwarm - swarms[swarm].servers.count, NamedLimits.servers - servers.count { $0.isNamed && !$0.isUnused })
        let known = Set(swarms[swarm].servers.map { servers[$0].description.publicKey })
        for server in list where room > 0 && !known.contains(server.publicKey) && (isLocalMap || !server.isLocal) {
            let made = Server(description: server, swarm: swarm, state: .idle(retryAt: now), isNamed: true)
            let index = freeServers.popLast() ?? servers.endIndex
            if index == servers.endIndex { servers.append(made) } else { servers[index] = made }
            swarms[swarm].servers.append(index)
            room -= 1
            wakeMoves(at: now)
        }
    }

    private mutating func endNamedSwarm(_ index: Int) {
        for server in swarms[index].servers { removeServer(server) }
        _ = subscriptions.removePlaces { _, swarm, _ in swarm == index }
        if namedIndex[swarms[index].id] == index { namedIndex[swarms[index].id] = nil }
        swarmsToAsk.remove(index)
        swarms[index] = Swarm(id: swarms[index].id, sources: [])
    }

    /// Carries named swarms over to a new map. One that the new map contains ends ``Configuration/moveLinger`` later, so that the map's servers are
    /// connected and asked first.
    mutating func keepNamedSwarms(of old: [Swarm], _ places: inout [Int: Int], at now: Instant, ring: SwarmRing) {
        namedIndex = [:]
        let known = Set(ring.ids)
        for (index, swarm) in old.enumerated() {
            guard let sources = swarm.sources, !sources.isEmpty else { continue }
            var swarm = swarm
            places[index] = swarms.count
            if known.contains(swarm.id) {
                let lingered = now + configuration.moveLinger
                swarm.endsAt = swarm.endsAt.map { min($0, lingered) } ?? lingered
            } else {
                namedIndex[swarm.id] = swarms.count
            }
            if let endsAt = swarm.endsAt { wakeMoves(at: endsAt) }
            swarms.append(swarm)
        }
    }

    /// Performs the moves and endings that are due.
    mutating func moveOn(at now: Instant) {
        if let due = movesAt, due <= now {
            movesAt = nil
            for (account, held) in heldMoves where held.due <= now {
                heldMoves[account] = nil
                if case .connected = servers[held.source].state { move(account, to: held.hint, by: held.source, at: now) }
            }
            for index in swarms.indices { if let endsAt = swarms[index].endsAt, endsAt <= now { endNamedSwarm(index) } }
            for one in subscriptions.removePlaces(where: { place, _, _ in place.until <= now }) { leave(one) }
            let times = heldMoves.values.map(\.due) + swarms.compactMap(\.endsAt) + [subscriptions.nextPlaceEnd].compactMap(\.self)
            if let next = times.min() { wakeMoves(at: next) }
        }
        guard let due = askAt, due <= now else { return }
        let ready = swarmsToAsk.sorted()
        (askAt, swarmsToAsk) = (nil, [])
        for swarm in ready { askForNewMembers(ofSwarm: swarm, at: now) }
    }
}
