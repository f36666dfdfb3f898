public import Core

extension GossipSubRouter {
    /// Publishes a message of this node. It is not validated, and need not be on a subscribed topic.
    ///
    /// - Parameter data: At most ``GossipConfiguration/maximumDataByteCount`` bytes.
    public mutating func publish(_ data: [UInt8], on topic: String, at now: Instant) -> GossipPublication {
        guard data.count <= configuration.maximumDataByteCount else { return .tooLarge }
        let id = MessageID(of: data[...])
        guard !seen.contains(id) else { return .duplicate }
        let recipients = recipientsOfOwn(data.count, on: topic, at: now).filter { peers[$0]?.unwanted[id] == nil }
        guard !recipients.isEmpty else { return .noPeers }
        _ = seen.insert(id, at: now)
        let message = GossipMessage(topic: topic, data: data[...], id: id, keptUntil: now + Self.ownPeriod, memory: memory)
        cache.insert(message)
        counters.published += 1
        counters.forwarded += recipients.count
        act(.forward(message, to: recipients))
        return .sent(peerCount: recipients.count)
    }

    /// The largest own message in bytes that is flooded. Larger ones would leave once for each of some hundred subscribers.
    static let floodByteLimit = 32 << 10

    /// How long own messages are kept by ``OutboundQueue/shorten(at:)``. Waku's clients wait a few seconds for an answer.
    static let ownPeriod = Duration.seconds(10)

    private mutating func recipientsOfOwn(_ byteCount: Int, on topic: String, at now: Instant) -> [PeerNumber] {
        let threshold = configuration.score.publishThreshold
        if configuration.floodsOwn, byteCount <= Self.floodByteLimit { return subscribers(of: topic).filter { score($0) >= threshold } }
        if isSubscribed(to: topic) {
            // Do not hold a message back while the mesh is still forming.
            let mesh = mesh(of: topic)
            return mesh.isEmpty ? Array(subscribers(of: topic).filter { score($0) >= threshold }.prefix(configuration.meshSize)) : mesh
        }
        topics[topic, default: GossipTopic()].fanoutUntil = now + configuration.fanoutPeriod
        if !ownTopics.contains(topic) { ownTopics.append(topic) }
        fillFanout(of: topic)
        return topics[topic]?.fanout ?? []
    }

    /// Replaces fanout peers that left or have too low a score.
    mutating func fillFanout(of topic: String) {
        let threshold = configuration.score.publishThreshold
        var fanout = topics[topic]?.fanout.filter { score($0) >= threshold } ?? []
        if fanout.count < configuration.meshSize {
            let others = subscribers(of: topic).filter { !fanout.contains($0) && score($0) >= threshold }
            fanout += others.shuffled(using: &random).prefix(configuration.meshSize - fanout.count)
        }
        topics[topic]?.fanout = fanout
    }

    /// Processes a frame of a connected peer: subscriptions, then messages, then control messages. Frames of unknown peers, and of those being
    /// disconnected, are ignored.
    public mutating func received(_ rpc: GossipRPC, from peer: PeerNumber, at now: Instant) {
        guard peers[peer] != nil, !graylistIfNeeded(peer) else { return }
        guard !rpc.isEmpty else { return receivedEmpty(from: peer) }
        for subscription in rpc.subscriptions { noteSubscription(subscription, of: peer) }
        for publication in rpc.publications {
            receivedMessage(publication, in: rpc, from: peer, at: now)
            if graylistIfNeeded(peer) { return }
        }
        // A score that this lowers counts from the peer's next frame, or from the next heartbeat.
        receivedControl(rpc, from: peer, at: now)
    }

    private mutating func receivedEmpty(from peer: PeerNumber) {
        peers[peer]?.emptyFrameCount += 1
        if let known = peers[peer], known.emptyFrameCount > GossipPeer.emptyFrameLimit { receivedMalformed(from: peer) }
    }

    /// Disconnects a peer that sent a malformed frame, and lowers its score.
    public mutating func receivedMalformed(from peer: PeerNumber) {
        guard peers[peer]?.isLeaving == false else { return }
        counters.rejected += 1
        peers[peer]?.score.sentInvalid()
        peers[peer]?.isLeaving = true
        act(.disconnect(peer))
    }

    private mutating func noteSubscription(_ subscription: GossipRPC.Subscription, of peer: PeerNumber) {
        let topic = subscription.topic
        if subscription.isOn {
            guard let known = peers[peer]?.topics, known.count < configuration.topicLimit, !known.contains(topic) else { return }
            peers[peer]?.topics.insert(topic)
            topics[topic, default: GossipTopic()].subscribers.append(peer)
        } else if peers[peer]?.topics.remove(topic) != nil {
            topics[topic]?.leaves(peer)
            forgetIfEmpty(topic)
        }
    }

    private mutating func receivedMessage(
        _ publication: GossipRPC.Publication, in rpc: GossipRPC, from peer: PeerNumber, at now: Instant
    ) {
        counters.received += 1
        guard isSubscribed(to: publication.topic) else {
            counters.foreign += 1
            return
        }
        guard !(publication.isAuthored && configuration.refusesAuthors), !publication.data.isEmpty else {
            counters.rejected += 1
            peers[peer]?.score.sentInvalid()
            return
        }
        let data = rpc.frame[publication.data]
        let id = publication.id ?? MessageID(of: data)
        guard seen.insert(id, at: now) else {
            counters.duplicates += 1
            // A peer that sends the message during its validation is scored like the first sender and is not sent a copy.
            if pending[id]?.senders.contains(peer) == false { pending[id]?.senders.append(peer) }
            return
        }
        promises.fulfil(id)
        guard data.count <= configuration.maximumDataByteCount else {
            counters.ignored += 1
            return
        }
        guard pendingByteCount + data.count <= configuration.pendingByteCount else {
            seen.remove(id)
            counters.overloaded += 1
            return
        }
        let message = GossipMessage(topic: publication.topic, data: data, id: id, memory: memory)
        pending[id] = Pending(message: message, senders: [peer])
        pendingByteCount += data.count
        if data.count >= configuration.idontwantByteCount { sendIDontWant(for: message, except: peer) }
        act(.validate(message, from: peer))
    }

    private mutating func sendIDontWant(for message: GossipMessage, except sender: PeerNumber) {
        for peer in mesh(of: message.topic) where peer != sender && peers[peer]?.version == .v12 {
            act(.send(.idontwant([message.id]), to: peer))
        }
    }

    /// Records the validator's verdict on a message and forwards the message if it was accepted. Further verdicts on the same message are ignored.
    ///
    /// - Parameters:
    ///   - id: The id of a message from ``GossipAction/validate(_:from:)``.
    ///   - verdict: The verdict.
    public mutating func judged(_ id: MessageID, as verdict: GossipVerdict, at now: Instant) {
        guard let (message, senders) = pending.removeValue(forKey: id).map({ ($0.message, $0.senders) }) else { return }
        pendingByteCount -= message.data.count
        switch verdict {
        case .accept:
            counters.accepted += 1
            peers[senders[0]]?.score.deliveredFirst(configuration.score)
            peers[senders[0]]?.deliveredCount += 1
            cache.insert(message)
            let recipients = mesh(of: message.topic).filter { !senders.contains($0) && peers[$0]?.unwanted[id] == nil }
            guard !recipients.isEmpty else { return }
            counters.forwarded += recipients.count
            act(.forward(message, to: recipients))
        case .ignore:
            counters.ignored += 1
        case .reject:
            counters.rejected += 1
            for peer in senders {
                peers[peer]?.score.sentInvalid()
                if peers[peer] != nil { graylistIfNeeded(peer) }
            }
        }
    }
}
