import Core

extension MonitorStateMachine {
    /// The number of entries of a request not answered yet; nil if it is unknown, or belongs to another connection.
    func entryCount(of tag: RequestTag, on connection: ConnectionNumber) -> Int? {
        guard let request = requests[tag], connections[connection] == request.server else { return nil }
        return request.sequences.count
    }

    /// A request was handed to its connection: the server has ``Configuration/replyTimeout`` to answer from now on. Until then its entries are read,
    /// and a store that can't be read is no fault of the server.
    mutating func sent(_ tag: RequestTag, at now: Instant) {
        guard let index = requests[tag]?.server, let place = servers[index].outstanding.firstIndex(where: { $0.tag == tag }) else { return }
        let deadline = now + configuration.replyTimeout
        servers[index].outstanding[place].deadline = deadline
        servers[index].updateWakeUp()
        wake(at: deadline)
    }

    /// A server has answered a request.
    ///
    /// - Parameter outcomes: One for each entry; nil for an invalid answer, which closes the connection.
    mutating func replied(_ tag: RequestTag, _ outcomes: [MonitorOutcome]?, at now: Instant) {
        guard let request = requests.removeValue(forKey: tag) else { return }
        let index = request.server
        unansweredByteCount -= request.byteCount
        servers[index].outstanding.removeAll { $0.tag == tag }
        if let outcomes, outcomes.count == request.sequences.count {
            servers[index].failures = 0
            for (sequence, outcome) in zip(request.sequences, outcomes) {
                switch outcome {
                case .success: servers[index].wrongSwarmCounts[sequence] = nil
                case .refused(let refusal, let hint):
                    refused(sequence, refusal, by: index, at: now)
                    if let hint, let member = member(index, sequence) {
                        move(subscriptions.account(ofSlot: member.slot), to: hint, by: index, at: now)
                    }
                }
            }
            servers[index].updateWakeUp()
            if let due = servers[index].wakeUp { wake(at: due) }
        } else {
            close(index, at: now)
        }
        askBacklog(at: now)
    }

    /// An oxenmq error such as `UNKNOWNCOMMAND` was received instead of an answer: all entries count as refused until the next renewal.
    mutating func refused(_ tag: RequestTag, at now: Instant) {
        guard let request = requests[tag] else { return }
        replied(tag, [MonitorOutcome](repeating: .refused(.other), count: request.sequences.count), at: now)
    }

    mutating func refused(_ sequence: UInt64, _ refusal: MonitorRefusal, by index: Int, at now: Instant) {
        if refusal == .wrongSwarm { wantMap(at: now) }
        // Otherwise renewals that are refused would pile up until the next renewal of their range.
        guard isLiveOrFirst(index, sequence) else { return }
        servers[index].refused[sequence] = refusal
        guard refusal == .wrongSwarm else { return }
        // The server's map may be older than this node's: asks a few more times, then only with each renewal.
        let count = servers[index].wrongSwarmCounts[sequence, default: 0] + 1
        servers[index].wrongSwarmCounts[sequence] = count
        guard count <= configuration.pauses.count else { return }
        let retryAt = now + configuration.pause(afterFailures: count)
        servers[index].retries[sequence] = retryAt
        servers[index].retryAt = servers[index].retryAt.map { min($0, retryAt) } ?? retryAt
    }

    private mutating func wantMap(at now: Instant) {
        guard let last = mapRequestedAt, now - last < configuration.mapInterval else {
            mapRequestedAt = now
            actions.append(.requestMap)
            return
        }
        let time = last + configuration.mapInterval
        mapWantedAt = time
        wake(at: time)
    }

    /// Extends the deadlines of a connection that is not read for a while.
    mutating func postpone(_ connection: ConnectionNumber, by duration: Duration) {
        guard let index = connections[connection] else { return }
        for place in servers[index].outstanding.indices {
            servers[index].outstanding[place].deadline = servers[index].outstanding[place].deadline.map { $0 + duration }
        }
        servers[index].updateWakeUp()
    }

    // MARK: Asking

    /// Asks a server for the members of its swarm that it has not been asked for yet.
    mutating func askForNewMembers(_ index: Int, at now: Instant) {
        while askForNextMembers(index, at: now) {}
    }

    /// Asks all servers of a swarm in turn, so that requests for the same subscriptions are adjacent and their entries are read once.
    mutating func askForNewMembers(ofSwarm swarm: Int, at now: Instant) {
        var asking = swarms[swarm].servers
        while !asking.isEmpty { asking = asking.filter { askForNextMembers($0, at: now) } }
    }

    /// - Returns: Whether there may be more members.
    private mutating func askForNextMembers(_ index: Int, at now: Instant) -> Bool {
        guard case .connected = servers[index].state, !servers[index].isInBacklog else { return false }
        var isAsked = false
        if let batch = batch(index, after: servers[index].askedThrough, through: .max), send(batch.members, to: index) {
            isAsked = true
            let after = servers[index].askedThrough
            servers[index].askedThrough = batch.through
            if let last = servers[index].ranges.indices.last, now - servers[index].ranges[last].firstAskedAt <= configuration.gathering,
                servers[index].ranges[last].through == after
            {
                servers[index].ranges[last].extend(through: batch.through, at: now, renewal: configuration.renewal)
            } else {
                servers[index].ranges.append(AskedRange(after: after, through: batch.through, askedAt: now, dueAt: dueTime(from: now)))
            }
        }
        servers[index].updateWakeUp()
        if let due = servers[index].wakeUp { wake(at: due) }
        return isAsked
    }

    /// Renews the ranges that are due, together with all ranges that were last asked long enough ago.
    mutating func renew(_ index: Int, at now: Instant) {
        guard case .connected = servers[index].state, servers[index].ranges.contains(where: { $0.dueAt <= now }) else { return }
        let renewal = configuration.renewal
        var kept: [AskedRange] = []
        var rest = servers[index].ranges[...]
        while let first = rest.first {
            guard first.mayBeRenewed(at: now, after: renewal) else {
                kept.append(first)
                rest.removeFirst()
                continue
            }
            let neighbours = rest.prefix { $0.mayBeRenewed(at: now, after: renewal) }
            rest = rest.dropFirst(neighbours.count)
            kept += renewed(neighbours, by: index, at: now)
        }
        servers[index].ranges = kept
    }

    /// - Returns: The ranges that replace the given ones.
    private mutating func renewed(_ ranges: ArraySlice<AskedRange>, by index: Int, at now: Instant) -> [AskedRange] {
        guard let first = ranges.first, let last = ranges.last else { return [] }
        var (after, made): (UInt64, [AskedRange]) = (first.after, [])
        forgetRefusals(index, after: first.after, through: last.through)
        while let batch = batch(index, after: after, through: last.through) {
            guard send(batch.members, to: index) else {
                // Still due: renewed once other requests are answered.
                return made + ranges.filter { $0.through > after }.map { $0.from(max($0.after, after)) }
            }
            made.append(AskedRange(after: after, through: batch.through, askedAt: now, dueAt: dueTime(from: now)))
            after = batch.through
        }
        return made
    }

    /// Forgets refusals of members that are asked for again, so that their reports are accepted.
    private mutating func forgetRefusals(_ index: Int, after: UInt64, through: UInt64) {
        guard !servers[index].refused.isEmpty else { return }
        let isInRange = { (sequence: UInt64) in after < sequence && sequence <= through }
        servers[index].refused = servers[index].refused.filter { !isInRange($0.key) }
        servers[index].wrongSwarmCounts = servers[index].wrongSwarmCounts.filter { !isInRange($0.key) }
        servers[index].retries = servers[index].retries.filter { !isInRange($0.key) }
    }

    /// Forgets refusals of a member that has left, or has another sequence number by now.
    mutating func forgetRefusals(of sequence: UInt64, inSwarm swarm: Int) {
        for index in swarms[swarm].servers where servers[index].hasRefusals {
            servers[index].refused[sequence] = nil
            servers[index].wrongSwarmCounts[sequence] = nil
            servers[index].retries[sequence] = nil
        }
    }

    /// Asks again for members refused with errcode 6.
    mutating func retryRefused(_ index: Int, at now: Instant) {
        guard let time = servers[index].retryAt, time <= now else { return }
        let due = servers[index].retries.filter { $0.value <= now }.keys.sorted()
        for sequence in due { servers[index].retries[sequence] = nil }
        var rest = due.compactMap { member(index, $0) }[...]
        while !rest.isEmpty {
            var size = 2
            let batch = rest.prefix(configuration.maximumRequestEntryCount).prefix { member in
                size += subscriptions.byteCount(ofSlot: member.slot)
                return size <= configuration.maximumRequestByteCount
            }
            let chosen = Array(batch.isEmpty ? rest.prefix(1) : batch)
            guard send(chosen, to: index) else { break }
            for member in chosen { servers[index].refused[member.sequence] = nil }
            rest = rest.dropFirst(chosen.count)
        }
        // Too many bytes are unanswered: retries the rest later.
        for member in rest { servers[index].retries[member.sequence] = now + configuration.pause(afterFailures: 1) }
        servers[index].retryAt = servers[index].retries.values.min()
    }

    /// The member with a sequence number, if it has not left.
    private func member(_ index: Int, _ sequence: UInt64) -> Swarm.Member? {
        swarms[servers[index].swarm].member(sequence).flatMap { subscriptions.isLive($0) ? $0 : nil }
    }

    private func isLiveOrFirst(_ index: Int, _ sequence: UInt64) -> Bool {
        swarms[servers[index].swarm].member(sequence).map { subscriptions.isLiveOrFirst($0) } ?? false
    }

    /// The next members that fit into one request; nil if there are none.
    private func batch(_ index: Int, after: UInt64, through: UInt64) -> (members: [Swarm.Member], through: UInt64)? {
        let swarm = swarms[servers[index].swarm]
        var (chosen, size, last): ([Swarm.Member], Int, UInt64) = ([], 2, after)
        var place = swarm.firstIndex(after: after)
        while place < swarm.members.count, swarm.members[place].sequence <= through {
            let member = swarm.members[place]
            if subscriptions.isLive(member) {
                size += subscriptions.byteCount(ofSlot: member.slot)
                let isWithin = size <= configuration.maximumRequestByteCount && chosen.count < configuration.maximumRequestEntryCount
                guard isWithin || chosen.isEmpty else { break }
                chosen.append(member)
            }
            last = member.sequence
            place += 1
        }
        return chosen.isEmpty ? nil : (chosen, last)
    }

    /// - Returns: false if too many bytes are unanswered: the server is then added to the backlog.
    private mutating func send(_ members: [Swarm.Member], to index: Int) -> Bool {
        guard case .connected(let number, _) = servers[index].state else { return false }
        let size = members.reduce(2) { $0 + subscriptions.byteCount(ofSlot: $1.slot) }
        guard unansweredByteCount == 0 || unansweredByteCount + size <= configuration.maximumUnansweredByteCount else {
            if !servers[index].isInBacklog {
                servers[index].isInBacklog = true
                backlog.append(index)
            }
            return false
        }
        lastTag += 1
        let tag = RequestTag(rawValue: lastTag)
        unansweredByteCount += size
        requests[tag] = (index, members.map(\.sequence), size)
        servers[index].outstanding.append((tag, nil))
        actions.append(.ask(number, tag, members.map { subscriptions.id(ofSlot: $0.slot) }))
        return true
    }

    /// Asks the servers of the backlog in order, while the limit of unanswered bytes allows it. For the remaining ones no requests are prepared.
    mutating func askBacklog(at now: Instant) {
        while unansweredByteCount < configuration.maximumUnansweredByteCount, let index = backlog.first {
            backlog.removeFirst()
            servers[index].isInBacklog = false
            renew(index, at: now)
            askForNewMembers(index, at: now)
            guard !servers[index].isInBacklog else {
                // It was appended to the backlog again: moves it back to the front.
                backlog.removeLast()
                backlog.insert(index, at: 0)
                return
            }
        }
    }

    /// The time of the next renewal: 45 to 55 minutes from now by default.
    private mutating func dueTime(from now: Instant) -> Instant {
        let part = Double.random(in: 0...1, using: &random) * configuration.renewalSpread
        return now + configuration.renewal + configuration.renewal * part
    }
}
