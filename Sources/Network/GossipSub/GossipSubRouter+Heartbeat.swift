public import Core

extension GossipSubRouter {
    /// Maintains meshes, scores and caches. Call it every ``GossipConfiguration/heartbeat``.
    public mutating func heartbeat(at now: Instant) {
        heartbeatCount += 1
        for peer in promises.broken(at: now) {
            counters.brokenPromises += 1
            peers[peer]?.score.misbehaved()
        }
        decayScores(at: now)
        asked.removeAll(keepingCapacity: true)
        for peer in peers.keys.sorted() {
            peers[peer]?.beginHeartbeat(heartbeatCount)
            graylistIfNeeded(peer)
        }
        for topic in ownTopics {
            topics[topic]?.forgetBackoffs(before: now - configuration.heartbeat * 2)
            if isSubscribed(to: topic) {
                maintainMesh(of: topic, at: now)
                if heartbeatCount.isMultiple(of: configuration.score.opportunisticHeartbeats) { graftBetter(into: topic, at: now) }
            } else {
                maintainFanout(of: topic, at: now)
            }
            gossip(about: topic)
        }
        ownTopics.removeAll { topics[$0] == nil }
        cache.shift()
    }

    private mutating func decayScores(at now: Instant) {
        let due = nextDecay ?? now + configuration.score.decayPeriod
        nextDecay = due
        guard now >= due else { return }
        nextDecay = now + configuration.score.decayPeriod
        for peer in peers.keys { peers[peer]?.score.decay(configuration.score) }
        for peer in retained.keys { retained[peer]?.score.decay(configuration.score) }
        retained = retained.filter { now < $0.value.until && !$0.value.score.isSpotless }
    }

    // MARK: Meshes

    /// Peers that may be grafted, in random order.
    private mutating func candidates(for topic: String, at now: Instant) -> [PeerNumber] {
        guard let state = topics[topic] else { return [] }
        return state.subscribers.filter { peer in
            // One heartbeat later than agreed: the peer's backoff started when it received the prune.
            !state.mesh.contains(peer) && score(peer) >= 0 && peers[peer]?.isLeaving == false
                && state.backoff[peer].map { now >= $0 + configuration.heartbeat } ?? true
        }.shuffled(using: &random)
    }

    mutating func maintainMesh(of topic: String, at now: Instant) {
        for peer in mesh(of: topic) where score(peer) < 0 { prune(peer, from: topic, backoff: configuration.pruneBackoff, at: now) }
        if mesh(of: topic).count < configuration.meshLow {
            for peer in candidates(for: topic, at: now).prefix(configuration.meshSize - mesh(of: topic).count) { graft(peer, into: topic) }
        }
        if mesh(of: topic).count > configuration.meshHigh { shrinkMesh(of: topic, at: now) }
        let outboundCount = mesh(of: topic).count { peers[$0]?.isOutbound ?? false }
        if outboundCount < configuration.meshOutbound {
            let outbound = candidates(for: topic, at: now).filter { peers[$0]?.isOutbound ?? false }
            for peer in outbound.prefix(configuration.meshOutbound - outboundCount) { graft(peer, into: topic) }
        }
    }

    /// Keeps the peers with the best scores and random others, enough outbound ones among them.
    private mutating func shrinkMesh(of topic: String, at now: Instant) {
        let ranked = mesh(of: topic).shuffled(using: &random).sorted { score($0) > score($1) }
        let best = ranked.prefix(configuration.meshBest)
        let others = ranked.dropFirst(configuration.meshBest).shuffled(using: &random)
        func isOutbound(_ peer: PeerNumber) -> Bool { peers[peer]?.isOutbound ?? false }
        let needed = others.filter(isOutbound).prefix(max(0, configuration.meshOutbound - best.count(where: isOutbound)))
        let order = best + needed + others.filter { !needed.contains($0) }
        for peer in order.dropFirst(configuration.meshSize) {
            prune(peer, from: topic, backoff: configuration.pruneBackoff, at: now)
        }
    }

    /// Opportunistic grafting: when the median score of the mesh is low, grafts two peers above it.
    private mutating func graftBetter(into topic: String, at now: Instant) {
        let scores = mesh(of: topic).map { score($0) }.sorted()
        guard scores.count > 1 else { return }
        let median = scores[scores.count / 2]
        guard median < configuration.score.opportunisticThreshold else { return }
        for peer in candidates(for: topic, at: now).filter({ score($0) > median }).prefix(2) { graft(peer, into: topic) }
    }

    private mutating func maintainFanout(of topic: String, at now: Instant) {
        if let until = topics[topic]?.fanoutUntil, now < until {
            fillFanout(of: topic)
        } else {
            topics[topic]?.fanout = []
            ownTopics.removeAll { $0 == topic }
            forgetIfEmpty(topic)
        }
    }

    // MARK: Gossip

    /// Announces recent messages to some peers outside of the mesh.
    private mutating func gossip(about topic: String) {
        guard let state = topics[topic] else { return }
        let ids = cache.ids(of: topic)
        guard !ids.isEmpty else { return }
        let others = state.subscribers.filter { peer in
            !state.mesh.contains(peer) && !state.fanout.contains(peer) && score(peer) >= configuration.score.gossipThreshold
        }
        let count = max(configuration.gossipPeerCount, Int(configuration.gossipFactor * Double(others.count)))
        for peer in others.shuffled(using: &random).prefix(count) {
            // A different random selection for each peer when there are too many.
            let announced = ids.count > configuration.idLimit ? Array(ids.shuffled(using: &random).prefix(configuration.idLimit)) : ids
            for part in announced.chunks(of: Self.idsPerItem) { act(.send(.ihave(topic: topic, ids: Array(part)), to: peer)) }
        }
    }
}
