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
        host.serve(WakuProtocol.filterPush, streamsPerPeer: 64) { [weak self] stream in
            for try await frames in stream.messages(limit: WakuProtocol.maximumMessageFrameByteCount) {
                guard let self else { return }
                // Whom nothing was asked of has nothing to send.
                guard filterPeers.withLock({ $0.isAsked(stream.peer) }) else { throw ConnectionError.refused }
                var messages: [ReceivedMessage] = []
                for frame in frames {
                    let received = try FilterPush(parsing: Array(frame.readableBytesView)).message
                    guard configuration.pubsubTopics.contains(received.pubsubTopic), received.message.flaw == nil else { continue }
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
        filterPeers.withLock { $0.begin(peer, over: life) }
        defer { filterPeers.withLock { $0.end(peer, over: life) } }
        var lastPing = Moment.now().uptime
        while !Task.isCancelled, isCurrent(connection) {
            let missing = filterPeers.withLock { $0.tell(peer, over: life, wanted: wantedTopics()) }
            let step = FilterSubscribeRequest.maximumContentTopicCount
            for start in stride(from: 0, to: missing.count, by: step) {
                let part = Array(missing[start..<min(start + step, missing.count)])
                for topic in configuration.pubsubTopics { try await tell(peer, .subscribe, topic, part) }
            }
            if !missing.isEmpty { filterPeers.withLock { $0.accepted(peer, over: life) } }
            if Moment.now().uptime - lastPing >= Self.pingPeriod {
                lastPing = Moment.now().uptime
                try await tell(peer, .ping, nil, [])
            }
            try await Task.sleep(for: Self.lookPeriod)
        }
    }

    /// As many as a filter node takes; that there are more is told once.
    private func wantedTopics() -> [ContentTopic] {
        let limit = FilterPeers.topicLimit
        let topics = configuration.contentTopics?(limit + 1) ?? []
        guard topics.count > limit else { return topics }
        if !hasWarnedOfTopics.exchange(true, ordering: .relaxed) {
            logger.warning(
                "filter nodes don't take all topics: some registrants' queries are not heard; --attach relay hears all",
                metadata: ["limit": "\(limit)"])
        }
        return Array(topics.prefix(limit))
    }

    /// - Throws: also when the node refuses: it is asked again over a new connection, with all there is.
    private func tell(_ peer: PeerID, _ kind: FilterSubscribeRequest.Kind, _ pubsubTopic: PubsubTopic?, _ topics: [ContentTopic])
        async throws
    {
        let request = FilterSubscribeRequest(requestID: RequestID.next(), kind: kind, pubsubTopic: pubsubTopic, contentTopics: topics)
        let response = try await ask(request.encoded(), of: peer, WakuProtocol.filterSubscribe, FilterSubscribeResponse.init(parsing:))
        guard response.status.isSuccess else {
            logger.info("filter node refuses", metadata: ["peer": "\(peer)", "status": "\(response.status.code)"])
            throw ConnectionError.refused
        }
    }
}
