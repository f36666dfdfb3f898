import Core

extension GossipSubRouter {
    /// The maximum number of ids in one IHAVE or IWANT: about 34 KB.
    static let idsPerItem = 1000

    mutating func receivedControl(_ rpc: GossipRPC, from peer: PeerNumber, at now: Instant) {
        for announcement in rpc.ihave { receivedIHave(announcement, from: peer, at: now) }
        receivedIWant(rpc.iwant, from: peer)
        // Each topic once per frame: repeated grafts are ignored.
        var grafted: Set<String> = []
        for topic in rpc.graft where grafted.insert(topic).inserted { receivedGraft(of: topic, from: peer, at: now) }
        for prune in rpc.prune { receivedPrune(prune, from: peer, at: now) }
        for id in rpc.idontwant where (peers[peer]?.unwanted.count ?? 0) < GossipPeer.unwantedLimit {
            peers[peer]?.unwanted[id] = heartbeatCount + configuration.idontwantHeartbeats
        }
    }

    /// Requests unknown messages from this peer. Each is requested from at most two peers per heartbeat, since one of them may not send it.
    private mutating func receivedIHave(_ announcement: GossipRPC.Announcement, from peer: PeerNumber, at now: Instant) {
        guard score(peer) >= configuration.score.gossipThreshold, isSubscribed(to: announcement.topic), var asking = peers[peer] else {
            return
        }
        asking.ihaveCount += 1
        defer { peers[peer] = asking }
        guard asking.ihaveCount <= configuration.ihaveLimit, asked.count < Self.askedLimit else { return }
        let room = configuration.idLimit - asking.askedCount
        var wanted: [MessageID] = []
        for id in announcement.ids where wanted.count < room && !seen.contains(id) && asked[id, default: 0] < 2 {
            asked[id, default: 0] += 1
            wanted.append(id)
        }
        guard let promised = wanted.randomElement(using: &random) else { return }
        asking.askedCount += wanted.count
        promises.add(promised, by: peer, due: now + configuration.promisePeriod)
        for ids in wanted.chunks(of: Self.idsPerItem) { act(.send(.iwant(Array(ids)), to: peer)) }
    }

    /// The maximum number of ids requested from all peers between two heartbeats.
    private static let askedLimit = 100_000

    private mutating func receivedIWant(_ ids: [MessageID], from peer: PeerNumber) {
        guard !ids.isEmpty, score(peer) >= configuration.score.gossipThreshold else { return }
        for id in ids {
            guard let message = cache.reply(id, to: peer, limit: configuration.replyLimit) else { continue }
            counters.replies += 1
            act(.send(.reply(message), to: peer))
        }
    }

    private mutating func receivedGraft(of topic: String, from peer: PeerNumber, at now: Instant) {
        // Grafts for unsubscribed topics are not answered, so that a flood of them costs nothing.
        guard isSubscribed(to: topic), let state = topics[topic], !state.mesh.contains(peer) else { return }
        if let until = state.backoff[peer], now < until {
            counters.graftFloods += 1
            let isFlood = now < until - configuration.pruneBackoff + configuration.graftFloodPeriod
            peers[peer]?.score.misbehaved(isFlood ? 2 : 1)
            prune(peer, from: topic, backoff: configuration.pruneBackoff, at: now)
            return
        }
        let isOutbound = peers[peer]?.isOutbound ?? false
        let isFull = state.mesh.count >= configuration.meshHigh && !isOutbound
        guard score(peer) >= 0, !isFull, state.subscribers.contains(peer) else {
            prune(peer, from: topic, backoff: configuration.pruneBackoff, at: now)
            return
        }
        topics[topic]?.mesh.append(peer)
    }

    private mutating func receivedPrune(_ prune: GossipRPC.Prune, from peer: PeerNumber, at now: Instant) {
        guard isSubscribed(to: prune.topic) else { return }
        topics[prune.topic]?.mesh.removeAll { $0 == peer }
        let backoff = min(prune.backoff ?? configuration.pruneBackoff, configuration.longestBackoff)
        topics[prune.topic]?.setBackoff(of: peer, until: now + backoff)
    }
}
