import LibP2P
import Logging
import NIOCore
import Core
import Synchronization
import Waku

/// The client of filter nodes, 12/WAKU2-FILTER, which push the messages on subscribed content topics. The client relays nothing. It suits a node
/// with few registrants and little bandwidth: filter nodes accept 1,000 topics per client.
///
/// Filter nodes forget their clients without notice. ``FilterSubscription`` decides when to ping them; ``FilterPeers`` records since when messages
/// may be lost, to be fetched from a store.
extension P2PRelay {
    /// Receives the messages that filter nodes push.
    func serveFilterPushes() {
        host.serve(WakuProtocol.filterPush, streamsPerPeer: 16) { [weak self] stream in
            // Only peers with a subscription may push.
            guard let self, !stream.connection.isInbound || hasSubscription(at: stream.peer) else { throw ConnectionError.refused }
            // After a slow delivery, the next messages may have arrived while it was in progress: they prove the subscription at that time only.
            var delayedSince: Moment?
            for try await frames in stream.messages(limit: WakuProtocol.maximumMessageFrameByteCount) {
                // A dialed peer may remember a subscription of an earlier connection and open its only stream before it is subscribed again.
                guard hasSubscription(at: stream.peer) else { continue }
                let now = Moment.now()
                let messages = frames.compactMap { self.wantedMessage($0) }
                await inbox.append(messages)
                let proof = delayedSince ?? now
                delayedSince = Instant.now - now.instant > .seconds(1) ? now : nil
                lockedState.withLock { $0.notePushed(messages, by: stream.peer, at: proof) }
            }
        }
    }

    private func hasSubscription(at peer: PeerID) -> Bool { lockedState.withLock { $0.filterPeers.isSubscribed(at: peer) } }

    private func wantedMessage(_ frame: ByteBuffer) -> ReceivedMessage? {
        guard let received = try? FilterPush(parsing: Array(frame.readableBytesView)).message,
            configuration.pubsubTopics.contains(received.pubsubTopic), received.message.flaw == nil
        else { return nil }
        if let wants = configuration.wants, !wants(received.message.contentTopic.listeningTag) { return nil }
        return received
    }

    /// Subscribes at a filter node, and again when there are more topics or the node has forgotten them, until the connection ends.
    func filter(over connection: Connection) async throws {
        let (peer, id) = (connection.peer, ObjectIdentifier(connection))
        let isNew = lockedState.withLock { isCurrent(connection) && $0.filterPeers.begin(peer, over: id, at: .now) }
        guard isNew else { return }
        defer { lockedState.withLock { $0.filterPeers.end(peer, over: id) } }
        // Subscriptions of an earlier connection would count towards the node's limit.
        _ = try await sendRequest(peer, kind: .unsubscribeAll)
        while !Task.isCancelled, isCurrent(connection) {
            let (wanted, now) = (wantedTopics(), Instant.now)
            switch lockedState.withLock({ $0.filterPeers.next(peer, over: id, wanted: wanted, dropped: $0.droppedTopics, at: now) }) {
            case .ask(let request): try await perform(request, at: peer, over: id)
            case .wait(let until): try await until.sleep()
            case nil: return
            }
        }
    }

    private func perform(_ request: FilterSubscription.Request, at peer: PeerID, over id: ObjectIdentifier) async throws {
        let sent = Moment.now()
        var status = WakuStatus(code: 200)
        switch request {
        case .ping: status = try await sendRequest(peer, kind: .ping)
        case .subscribe(let part):
            for topic in configuration.pubsubTopics where status.isSuccess {
                status = try await sendRequest(peer, kind: .subscribe, pubsubTopic: topic, topics: part)
            }
        case .unsubscribe(let part):
            for topic in configuration.pubsubTopics where status.isSuccess {
                status = try await sendRequest(peer, kind: .unsubscribe, pubsubTopic: topic, topics: part)
            }
        }
        let now = Moment.now()
        if isForNow(status, request, of: peer) {
            logger.info("filter node refused request for now", metadata: ["peer": "\(peer)", "status": .stringConvertible(status.code)])
            if status.code == 503 { reportTopicLimit(lockedState.withLock(\.filterPeers.topics.count)) }
            lockedState.withLock { $0.filterPeers.refusedForNow(request, peer, over: id, sent: sent, at: now.instant) }
        } else if request.findsSubscription, status.code == StatusResponse.notFound {
            logger.info("filter node dropped the subscription", metadata: ["peer": "\(peer)"])
            lockedState.withLock { $0.filterPeers.forgotten(peer, over: id, at: now.instant) }
        } else {
            try expectSuccess(status, of: peer)
            let newTopics = lockedState.withLock { state in
                let newTopics = state.filterPeers.succeeded(request, peer, over: id, sent: sent, at: now.instant)
                if !newTopics.isEmpty { state.lookBack.add(newTopics, at: now) }
                state.forgetDroppedTopics()
                return newTopics
            }
            if request != .ping { updateAttachment() }
            if !newTopics.isEmpty { lookBackAdded.signal() }
        }
    }

    /// Whether the node refuses a valid request because of its rate limit, or further topics because it or this client has too many. go-waku answers
    /// the latter to subscribed clients, too, while it has no room for new ones.
    private func isForNow(_ status: WakuStatus, _ request: FilterSubscription.Request, of peer: PeerID) -> Bool {
        if status.code == 429 { return true }
        guard status.code == 503, case .subscribe = request else { return false }
        return lockedState.withLock { $0.filterPeers.accepted.contains(peer) }
    }

    /// The content topics to subscribe to, up to the node's limit. Logs once when there are more.
    private func wantedTopics() -> [ContentTopic] {
        let limit = lockedState.withLock(\.filterPeers.topicLimit)
        let configured = configuration.contentTopics?(limit + 1) ?? []
        let watched = lockedState.withLock(\.watchedTopics)
        let topics = watched.isEmpty ? configured : configured + watched.filter { !configured.contains($0) }
        guard topics.count > limit else { return topics }
        reportTopicLimit(limit)
        return Array(topics.prefix(limit))
    }

    private func reportTopicLimit(_ limit: Int) {
        guard lockedState.withLock({ $0.shouldReportTopicLimit() }) else { return }
        logger.warning(
            "filter nodes do not accept all topics; some queries will be missed: use --attach relay",
            metadata: ["limit": .stringConvertible(limit)])
    }

    private func sendRequest(
        _ peer: PeerID, kind: FilterSubscribeRequest.Kind, pubsubTopic: PubsubTopic? = nil, topics: [ContentTopic] = []
    ) async throws -> WakuStatus {
        let message = FilterSubscribeRequest(requestID: RequestID.next(), kind: kind, pubsubTopic: pubsubTopic, contentTopics: topics)
        return try await request(message.encoded(), of: peer, WakuProtocol.filterSubscribe, StatusResponse.init(parsing:)).status
    }

    /// - Throws: When the node refuses, which ends the connection: all topics are sent again over the next one.
    private func expectSuccess(_ status: WakuStatus, of peer: PeerID) throws {
        guard !status.isSuccess else { return }
        lockedState.withLock { $0.detachedReason = "a filter node refuses this node's topics: status \(status.code)" }
        logger.info("filter node refused request", metadata: ["peer": "\(peer)", "status": .stringConvertible(status.code)])
        throw ConnectionError.refused
    }
}

extension FilterSubscription.Request {
    /// Whether the node answers 404 when it has no subscription of this client.
    fileprivate var findsSubscription: Bool {
        switch self {
        case .ping, .unsubscribe: true
        case .subscribe: false
        }
    }
}
