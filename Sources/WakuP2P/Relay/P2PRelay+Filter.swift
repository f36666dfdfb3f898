import LibP2P
import Logging
import NIOCore
import Synchronization
import Waku

/// As a client of filter nodes, 12/WAKU2-FILTER: these send what is on the content topics that they are told, and nothing is relayed. For a
/// node with few registrants behind a small line: nodes take 1,000 topics of a client.
extension P2PRelay {
    /// From one look at what is wanted to the next, and from one question whether the node still knows this client to the next.
    private static let lookPeriod = Duration.seconds(1)
    private static let pingPeriod = Duration.seconds(30)

    /// What filter nodes send.
    func serveFilterPushes() {
        host.serve(WakuProtocol.filterPush, streamsPerPeer: 16) { [weak self] stream in
            // Whom nothing was asked of has nothing to send.
            guard let self, !stream.connection.isInbound || filterPeers.withLock({ $0.isAsked(stream.peer) }) else {
                throw ConnectionError.refused
            }
            for try await frames in stream.messages(limit: WakuProtocol.maximumMessageFrameByteCount) {
                // One that this node dialled may remember it from before, and open one stream for all that it will send.
                guard filterPeers.withLock({ $0.isAsked(stream.peer) }) else { continue }
                var messages: [ReceivedMessage] = []
                for frame in frames {
                    guard let received = try? FilterPush(parsing: Array(frame.readableBytesView)).message,
                        configuration.pubsubTopics.contains(received.pubsubTopic), received.message.flaw == nil
                    else { continue }
                    if let wants = configuration.wants, !(received.message.contentTopic.tag.map { wants($0) } ?? false) { continue }
                    messages.append(received)
                }
                await inbox.append(messages)
            }
        }
    }

    /// Tells a filter node what is wanted, anew whenever that grows, until the connection is gone.
    func filter(over connection: Connection) async throws {
        let (peer, life) = (connection.peer, ObjectIdentifier(connection))
        guard filterPeers.withLock({ isCurrent(connection) && $0.begin(peer, over: life, at: Moment.now().uptime) }) else { return }
        defer { filterPeers.withLock { $0.end(peer, over: life) } }
        // What it remembers of an earlier life would count towards the topics that it takes.
        _ = try await tell(peer, .unsubscribeAll)
        var lastPing = Moment.now().uptime
        while !Task.isCancelled, isCurrent(connection) {
            let wanted = wantedTopics()
            let parts = filterPeers.withLock { $0.tell(peer, over: life, wanted: wanted, at: Moment.now().uptime) }
            for (index, part) in parts.enumerated() {
                var status = WakuStatus(code: 200)
                for topic in configuration.pubsubTopics where status.isSuccess { status = try await tell(peer, .subscribe, topic, part) }
                if status.isTooOften {
                    filterPeers.withLock { $0.postpone(parts[index...], peer, over: life, at: Moment.now().uptime) }
                    break
                }
                try expectSuccess(status, of: peer)
                filterPeers.withLock { $0.accepted(peer, over: life) }
            }
            if Moment.now().uptime - lastPing >= Self.pingPeriod, filterPeers.withLock({ $0.accepted.contains(peer) }) {
                lastPing = Moment.now().uptime
                let status = try await tell(peer, .ping)
                if !status.isTooOften { try expectSuccess(status, of: peer) }
            }
            try await Task.sleep(for: Self.lookPeriod)
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
