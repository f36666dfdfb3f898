import Primitives
import LibP2P
import Logging
import NIOCore
import Synchronization
import Waku

/// As a client of filter nodes, 12/WAKU2-FILTER: these send what is on the content topics that they are told, and nothing is relayed. For a
/// node with few registrants behind a small line: nodes take 1,000 topics of a client.
///
/// Filter nodes forget their clients without a word. ``FilterSubscription`` decides when to ask whether they do, ``FilterPeers`` since when
/// messages may be lost; these are caught up from a store.
extension P2PRelay {
    /// What filter nodes send.
    func serveFilterPushes() {
        host.serve(WakuProtocol.filterPush, streamsPerPeer: 16) { [weak self] stream in
            // A peer that was asked for nothing has nothing to send.
            guard let self, !stream.connection.isInbound || filterPeers.withLock({ $0.isAsked(stream.peer) }) else {
                throw ConnectionError.refused
            }
            // Since when further messages may have waited, because those before were not taken: that they come now proves nothing of now.
            var heldUpSince: Moment?
            for try await frames in stream.messages(limit: WakuProtocol.maximumMessageFrameByteCount) {
                // A peer that this node dialled may remember it from before, and open one stream for all that it will send.
                guard filterPeers.withLock({ $0.isAsked(stream.peer) }) else { continue }
                let now = Moment.now()
                let messages = frames.compactMap { self.wantedMessage($0) }
                await inbox.append(messages)
                let proof = heldUpSince ?? now
                heldUpSince = Instant.now - now.instant > .seconds(1) ? now : nil
                filterPeers.withLock { peers in
                    for message in messages { peers.pushed(by: stream.peer, on: message.message.contentTopic, at: proof) }
                }
            }
        }
    }

    private func wantedMessage(_ frame: ByteBuffer) -> ReceivedMessage? {
        guard let received = try? FilterPush(parsing: Array(frame.readableBytesView)).message,
            configuration.pubsubTopics.contains(received.pubsubTopic), received.message.flaw == nil
        else { return nil }
        if let wants = configuration.wants, !(received.message.contentTopic.tag.map(wants) ?? false) { return nil }
        return received
    }

    /// Tells a filter node what is wanted, anew whenever that grows or the node has forgotten it, until the connection is gone.
    func filter(over connection: Connection) async throws {
        let (peer, life) = (connection.peer, ObjectIdentifier(connection))
        guard filterPeers.withLock({ isCurrent(connection) && $0.begin(peer, over: life, at: Instant.now) }) else { return }
        defer { filterPeers.withLock { $0.end(peer, over: life) } }
        // What it remembers of an earlier life would count towards the topics that it takes.
        _ = try await tell(peer, .unsubscribeAll)
        while !Task.isCancelled, isCurrent(connection) {
            let (wanted, now) = (wantedTopics(), Instant.now)
            switch filterPeers.withLock({ $0.next(peer, over: life, wanted: wanted, at: now) }) {
            case .ask(let request): try await ask(request, peer, over: life)
            case .wait(let until): try await Task.sleep(for: until - now)
            case nil: return
            }
        }
    }

    private func ask(_ request: FilterSubscription.Request, _ peer: PeerID, over life: ObjectIdentifier) async throws {
        let sent = Moment.now()
        var status = WakuStatus(code: 200)
        switch request {
        case .ping: status = try await tell(peer, .ping)
        case .subscribe(let part):
            for topic in configuration.pubsubTopics where status.isSuccess { status = try await tell(peer, .subscribe, topic, part) }
        }
        let now = Moment.now()
        if status.isTooOften {
            filterPeers.withLock { $0.askedTooOften(request, peer, over: life, sent: sent, at: now.instant) }
        } else if request == .ping, status.code == FilterSubscribeResponse.notFound {
            logger.info("filter node forgot this node's topics", metadata: ["peer": "\(peer)"])
            filterPeers.withLock { $0.forgotten(peer, over: life, at: now.instant) }
        } else {
            try expectSuccess(status, of: peer)
            let unheard = filterPeers.withLock { $0.succeeded(request, peer, over: life, sent: sent, at: now.instant) }
            if request != .ping { noteListening() }
            if !unheard.isEmpty {
                lookBack.withLock { $0.add(unheard, at: now) }
                lookBackAdded.signal()
            }
        }
    }

    /// Looks up the last seconds' queries on topics that a node was just told.
    func lookBack(deliver: @Sendable ([ReceivedMessage]) async -> Void) async {
        for await _ in lookBackAdded {
            while !Task.isCancelled, let query = lookBack.withLock({ $0.next(at: Instant.now) }) {
                do throws(StoreError) {
                    let page = try await self.query(query)
                    let fresh = lookBack.withLock { $0.fresh(page.messages) }
                    guard !fresh.isEmpty else { continue }
                    configuration.report(.recovered(fresh.count))
                    await deliver(fresh)
                } catch {
                    logger.debug("last queries not looked up", metadata: ["reason": "\(error)"])
                    lookBack.withLock { $0.failed() }
                }
            }
        }
    }

    /// As many as a filter node takes; that there are more is told once.
    private func wantedTopics() -> [ContentTopic] {
        let limit = filterPeers.withLock(\.topicLimit)
        let topics = configuration.contentTopics?(limit + 1) ?? []
        guard topics.count > limit else { return topics }
        if !hasWarnedOfTopics.exchange(true, ordering: .relaxed) {
            logger.warning(
                "filter nodes don't take all topics: some registrants' queries are not heard; --attach relay hears all",
                metadata: ["limit": "\(limit)"])
        }
        return Array(topics.prefix(limit))
    }

    private func tell(
        _ peer: PeerID, _ kind: FilterSubscribeRequest.Kind, _ pubsubTopic: PubsubTopic? = nil, _ topics: [ContentTopic] = []
    ) async throws -> WakuStatus {
        let request = FilterSubscribeRequest(requestID: RequestID.next(), kind: kind, pubsubTopic: pubsubTopic, contentTopics: topics)
        return try await ask(request.encoded(), of: peer, WakuProtocol.filterSubscribe, FilterSubscribeResponse.init(parsing:)).status
    }

    /// - Throws: when the node refuses: it is asked again over a new connection, with all there is.
    private func expectSuccess(_ status: WakuStatus, of peer: PeerID) throws {
        guard !status.isSuccess else { return }
        reason.withLock { $0 = "a filter node refuses this node's topics: status \(status.code)" }
        logger.info("filter node refuses", metadata: ["peer": "\(peer)", "status": "\(status.code)"])
        throw ConnectionError.refused
    }
}

extension WakuStatus {
    /// Not now, though nothing is wrong with what was asked.
    fileprivate var isTooOften: Bool { code == 429 }
}
