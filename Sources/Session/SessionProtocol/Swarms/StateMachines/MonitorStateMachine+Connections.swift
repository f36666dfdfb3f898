import Core

extension MonitorStateMachine {
    /// HELLO was received: asks the server for all accounts of its swarm.
    mutating func connected(_ number: ConnectionNumber, at now: Instant) {
        guard let index = connections[number], case .connecting = servers[index].state else { return }
        connectingCount -= 1
        servers[index].state = .connected(number, since: now)
        servers[index].forgetAsked()
        servers[index].lateEndings = 0
        askForNewMembers(index, at: now)
        connect(at: now)
    }

    /// The connection failed or ended, or the server sent BYE.
    mutating func failed(_ number: ConnectionNumber, at now: Instant) {
        guard let index = connections[number] else { return }
        if case .connected(_, let since) = servers[index].state, now - since >= configuration.stableConnection {
            servers[index].failures = 0
        }
        end(index, at: now)
        connect(at: now)
        askBacklog(at: now)
    }

    /// Closes a connection because of a fault of the server, and pauses before the next attempt.
    mutating func close(_ index: Int, at now: Instant) {
        guard let number = servers[index].connection else { return }
        actions.append(.close(number))
        end(index, at: now)
        askBacklog(at: now)
    }

    private mutating func end(_ index: Int, at now: Instant) {
        disconnect(index)
        servers[index].failures += 1
        let retryAt = now + configuration.pause(afterFailures: servers[index].failures)
        servers[index].state = .idle(retryAt: retryAt)
        servers[index].updateWakeUp()
        wake(at: retryAt)
    }

    /// Forgets a connection and its requests.
    mutating func disconnect(_ index: Int) {
        if case .connecting = servers[index].state { connectingCount -= 1 }
        if let number = servers[index].connection { connections[number] = nil }
        dropRequests(index)
        servers[index].forgetAsked()
    }

    /// Forgets the requests of a server; later answers are ignored.
    mutating func dropRequests(_ index: Int) {
        for (tag, _) in servers[index].outstanding {
            if let request = requests.removeValue(forKey: tag) { unansweredByteCount -= request.byteCount }
        }
        servers[index].outstanding = []
    }

    /// Starts connections whose pause is over, longest waiting first, up to the connection limit.
    mutating func connect(at now: Instant) {
        guard connectingCount < configuration.maximumConnecting else { return }
        let ready = servers.indices.compactMap { index -> (retryAt: Instant, index: Int)? in
            guard case .idle(let retryAt) = servers[index].state, retryAt <= now else { return nil }
            return (retryAt, index)
        }
        for (_, index) in ready.sorted(by: { $0 < $1 }).prefix(configuration.maximumConnecting - connectingCount) {
            lastConnection += 1
            let number = ConnectionNumber(rawValue: lastConnection)
            let deadline = now + configuration.connectTimeout
            servers[index].state = .connecting(number, deadline: deadline)
            servers[index].updateWakeUp()
            connections[number] = index
            connectingCount += 1
            wake(at: deadline)
            actions.append(.connect(number, servers[index].description))
        }
    }

    // MARK: The map

    /// Updates the storage servers of the network. Accounts move to their nearest swarms; remaining servers keep their connections.
    mutating func update(_ list: [StorageServer], at now: Instant) {
        mapWantedAt = nil
        isLocalMap = list.contains(where: \.isLocal)
        let kept = Set(list.map(\.publicKey))
        for index in servers.indices where servers[index].isOfMap && !kept.contains(servers[index].description.publicKey) {
            removeServer(index)
        }
        let moved = updateSwarms(SwarmRing(list.map(\.swarm)), at: now)
        for server in list { place(server, at: now) }
        for index in swarms.indices { swarms[index].servers = [] }
        for index in servers.indices where !servers[index].isUnused { swarms[servers[index].swarm].servers.append(index) }
        for (slot, swarm) in moved {
            lastSequence += 1
            _ = subscriptions.setSequence(lastSequence, ofSlot: slot)
            swarms[swarm].append(sequence: lastSequence, slot: slot)
        }
        allowLateEndings(moved.count)
        for index in swarms.indices { askForNewMembers(ofSwarm: index, at: now) }
        connect(at: now)
        askBacklog(at: now)
    }

    mutating func removeServer(_ index: Int) {
        if let number = servers[index].connection { actions.append(.close(number)) }
        disconnect(index)
        if !servers[index].isNamed { serverIndex[servers[index].description.publicKey] = nil }
        servers[index].state = .unused
        servers[index].updateWakeUp()
        freeServers.append(index)
    }

    /// - Returns: The slots of subscriptions that have moved to another swarm, without sequence numbers.
    private mutating func updateSwarms(_ new: SwarmRing, at now: Instant) -> [(slot: Int, swarm: Int)] {
        guard new != ring else { return [] }
        let old = swarms
        var places: [Int: Int] = [:]
        swarms = new.ids.enumerated().map { place, id in
            guard let known = swarmIndex[id] else { return Swarm(id: id) }
            places[known] = place
            return old[known]
        }
        keepNamedSwarms(of: old, &places, at: now, ring: new)
        ring = new
        swarmIndex = Dictionary(uniqueKeysWithValues: new.ids.enumerated().map { ($1, $0) })
        subscriptions.renumberSwarms { places[$0] }
        swarmsToAsk = []
        askAt = nil
        for index in servers.indices where !servers[index].isUnused { servers[index].swarm = places[servers[index].swarm] ?? -1 }
        let moved = subscriptions.assign { [ring, swarmIndex] account in
            ring.swarm(at: account.swarmPosition).flatMap { swarmIndex[$0] }
        }
        // Removes places in the account's own swarm and in swarms that no longer exist.
        _ = subscriptions.removePlaces { _, swarm, own in swarm < 0 || swarm == own }
        for index in swarms.indices {
            swarms[index].liveCount = swarms[index].members.lazy.filter { [subscriptions] in subscriptions.isLive($0) }.count
            swarms[index].compact { [subscriptions] in subscriptions.isLive($0) }
        }
        return moved
    }

    /// Adds or updates a server of the map.
    private mutating func place(_ server: StorageServer, at now: Instant) {
        guard let swarm = swarmIndex[server.swarm] else { return }
        guard let index = serverIndex[server.publicKey] else {
            let made = Server(description: server, swarm: swarm, state: .idle(retryAt: now))
            let index = freeServers.popLast() ?? servers.endIndex
            if index == servers.endIndex { servers.append(made) } else { servers[index] = made }
            serverIndex[server.publicKey] = index
            wake(at: now)
            return
        }
        let known = servers[index].description
        servers[index].description = server
        if known.ip != server.ip || known.port != server.port {
            if let number = servers[index].connection { actions.append(.close(number)) }
            disconnect(index)
            servers[index].failures = 0
            servers[index].state = .idle(retryAt: now)
            servers[index].updateWakeUp()
            wake(at: now)
        } else if servers[index].swarm != swarm {
            dropRequests(index)
            servers[index].forgetAsked()
        }
        servers[index].swarm = swarm
    }
}

extension MonitorStateMachine.Server {
    var connection: ConnectionNumber? {
        switch state {
        case .connecting(let number, _), .connected(let number, _): number
        case .idle, .unused: nil
        }
    }

    var isOfMap: Bool { !isNamed && !isUnused }

    var isUnused: Bool {
        if case .unused = state { return true }
        return false
    }
}
