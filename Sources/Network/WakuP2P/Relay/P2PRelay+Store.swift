import Core
import GossipSub
import LibP2P
import Logging
import NIOCore
import Synchronization
public import Waku
import WakuCrypto

extension P2PRelay {
    /// Looks up which of these messages are in a peer's store.
    ///
    /// - Parameter hashes: At most `Publication.lookUpLimit`.
    /// - Throws: `RelayError`: `refused` when no peer has a store, `unavailable` when none answers.
    public func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        Set(try await storePage(StoreQuery(hashes: hashes, includesMessages: false)).hashes)
    }

    enum StoreError: Error, CustomStringConvertible {
        case noStore
        case failed(String, isTooMuch: Bool)

        var isTooMuch: Bool {
            if case .failed(_, isTooMuch: true) = self { true } else { false }
        }

        var isNoStore: Bool {
            if case .noStore = self { true } else { false }
        }

        var description: String {
            switch self {
            case .noStore: "no peer has a store"
            case .failed(let reason, _): reason
            }
        }
    }

    var hasStore: Bool { !stores.isEmpty }

    /// The peers used for store queries, in random order.
    var stores: [PeerID] { stores(of: configuration.pubsubTopics) }

    /// The peers used for store queries on one of these topics, in random order. Without peers of other shards: they would answer that there are no
    /// messages.
    func stores(of topics: [PubsubTopic]) -> [PeerID] {
        let peers = ownPeers(speaking: WakuProtocol.store)
        let (metadata, gossip) = (lockedState.withLock(\.metadata), driver.statuses)
        let subscriptions = Dictionary(gossip.map { ($0.peer, $0.status.topics) }) { first, _ in first }
        return topics.isEmpty
            ? peers
            : peers.filter { peer in
                topics.contains { StoreChoice.mayStore($0, metadata[peer], subscriptions: subscriptions[peer] ?? []) }
            }
    }

    /// The peers that may serve this node, in random order: those that it dialed, and configured ones. Any other node could dial in and falsely answer
    /// that there are no messages, or that it has sent one on.
    func ownPeers(speaking protocolID: String) -> [PeerID] {
        let own = Set(host.peers.lazy.filter { !$0.connection.isInbound }.map(\.connection.peer))
        return peers(speaking: protocolID).filter { own.contains($0) || isConfigured($0) }
    }

    func peers(speaking protocolID: String) -> [PeerID] {
        host.peers.filter { $0.info?.protocols.contains(protocolID) ?? false }.map(\.connection.peer).shuffled()
    }

    /// Queries the peers with a store one after the other until one answers. Those that did not answer before come last.
    func query(_ query: StoreQuery, within limit: TimeAmount = storeTimeout) async throws(StoreError) -> StorePage {
        let peers = stores(of: query.pubsubTopic.map { [$0] } ?? configuration.pubsubTopics)
        return try await self.query(query, of: lockedState.withLock { $0.storePeers.order(peers) }, within: limit).page
    }

    private static let storeTimeout = TimeAmount.seconds(30)
    /// A message that is found later than the window is too old: see ``QueryLookBack``.
    private static let lookBackTimeout = TimeAmount(QueryLookBack.window)

    private func query(
        _ query: StoreQuery, of peers: [PeerID], within limit: TimeAmount = storeTimeout
    ) async throws(StoreError) -> (page: StorePage, peer: PeerID) {
        var failure = StoreError.noStore
        for peer in peers where !Task.isCancelled {
            var isAnswered = true
            lockedState.withLock { $0.storePeers.asked(peer) }
            defer { lockedState.withLock { $0.storePeers.finished(peer, isAnswered: isAnswered) } }
            do {
                let response = try await request(
                    query.encoded(requestID: RequestID.next()), of: peer, WakuProtocol.store,
                    limit: WakuProtocol.maximumStoreFrameByteCount, within: limit, StoreResponse.init(parsing:))
                guard response.status.isSuccess else {
                    failure = .failed("\(peer): \(response.status)", isTooMuch: false)
                    continue
                }
                noteUnreadable(response.unreadableCount(includesMessages: query.includesMessages), of: peer)
                let page = StorePage(
                    messages: response.entries.compactMap(\.message).filter { $0.message.flaw == nil && query.covers($0) },
                    hashes: response.entries.map(\.hash),
                    cursor: response.cursor.map { "0x" + hexString($0) })
                return (page, peer)
            } catch is ProtobufError {
                failure = .failed("\(peer): the response is malformed", isTooMuch: false)
            } catch {
                let isTooMuch = [.messageTooLarge, .timedOut].contains(error as? ConnectionError)
                failure = .failed("\(peer): \(error)", isTooMuch: isTooMuch)
                isAnswered = error as? ConnectionError == .messageTooLarge
            }
        }
        throw failure
    }

    /// Such messages are skipped: without a word, a store of nothing else would look like an empty one.
    private func noteUnreadable(_ count: Int, of peer: PeerID) {
        guard count > 0, lockedState.withLock({ $0.shouldReportUnreadableStore(of: peer) }) else { return }
        logger.warning(
            "store returned unreadable messages; they are skipped", metadata: ["peer": "\(peer)", "messages": .stringConvertible(count)])
    }

    // MARK: Looking back

    /// Queries stores for the messages of the last seconds: see ``QueryLookBack``.
    func lookBack(deliver: @Sendable ([ReceivedMessage]) async -> Void) async {
        for await _ in lookBackAdded {
            while !Task.isCancelled, let action = lockedState.withLock({ $0.lookBack.next(at: .now) }) {
                switch action {
                case .wait(let until): try? await until.sleep()
                case .query(let query): await lookBack(by: query, deliver: deliver)
                }
            }
        }
    }

    private func lookBack(by query: StoreQuery, deliver: @Sendable ([ReceivedMessage]) async -> Void) async {
        do throws(StoreError) {
            let page = try await self.query(query, within: Self.lookBackTimeout)
            let fresh = lockedState.withLock { state in
                state.lookBack.answered(page)
                return state.lookBack.fresh(page.messages.filter { self.isLookedBackFor($0, by: query) })
            }
            guard !fresh.isEmpty else { return }
            configuration.report(.recovered(fresh.count))
            await deliver(fresh)
        } catch {
            logger.debug("failed to look up recent messages", metadata: ["reason": "\(error)"])
            lockedState.withLock { $0.lookBack.failed(at: .now) }
        }
    }

    /// A query without content topics returns all messages of the shard, also those of other nodes and those that catching up fetches.
    private func isLookedBackFor(_ received: ReceivedMessage, by query: StoreQuery) -> Bool {
        let topic = received.message.contentTopic
        guard query.contentTopics.isEmpty else { return true }
        return !configuration.catchUpTopics.contains(topic) && configuration.wants.map { $0(topic.listeningTag) } ?? true
    }

    // MARK: Catching up

    /// Catches up on a pubsub topic from one of the stores of ``StoreChoice``.
    func catchUp(
        on index: Int, from store: Int, gaps: WakeUpSignal, deliver: @Sendable ([ReceivedMessage]) async -> Void
    ) async {
        var gaps = gaps.makeAsyncIterator()
        while !Task.isCancelled {
            switch lockedState.withLock({ $0.progress.topics[index].catchUp.next(at: .now(), store: store) }) {
            case .idle: guard await gaps.next() != nil else { return }
            // In steps, because a reconnection ends the pause early.
            case .wait(let until): try? await min(until, Instant.now + .seconds(1)).sleep()
            case .query(let query): await walk(query, on: index, from: store, deliver: deliver)
            }
        }
    }

    private func walk(
        _ query: StoreQuery, on index: Int, from store: Int, deliver: @Sendable ([ReceivedMessage]) async -> Void
    ) async {
        let stores = stores(of: [configuration.pubsubTopics[index]])
        let candidates = lockedState.withLock { $0.progress.topics[index].stores.candidates(at: store, among: stores) }
        do throws(StoreError) {
            let (page, peer) = try await self.query(query, of: candidates)
            let fresh = lockedState.withLock { state in
                state.progress.topics[index].stores.answered(peer, at: store)
                return state.progress.topics[index].catchUp.fresh(page.messages, store: store)
            }
            if !fresh.isEmpty {
                configuration.report(.recovered(fresh.count))
                await deliver(fresh)
            }
            guard !Task.isCancelled else { return }
            let (summary, event) = lockedState.withLock { state in
                let summary = state.progress.topics[index].catchUp.answered(page, store: store)
                if summary != nil { state.progress.topics[index].stores.ended(at: store) }
                return (summary, summary == nil ? nil : state.progress.topics[index].catchUp.event(at: .now()))
            }
            if let event { configuration.report(event) }
            guard let summary else { return }
            var metadata: Logger.Metadata = [
                "topic": "\(configuration.pubsubTopics[index])", "peer": "\(peer)",
                "messages": .stringConvertible(summary.messageCount), "pages": .stringConvertible(summary.pageCount),
            ]
            guard let reason = summary.cutShort else { return logger.info("caught up from the store", metadata: metadata) }
            metadata["reason"] = "\(reason)"
            logger.warning("store not read to the end; messages may be missing", metadata: metadata)
        } catch {
            guard !Task.isCancelled else { return }
            catchUpFailed(error, on: index, from: store)
        }
    }

    private func catchUpFailed(_ error: StoreError, on index: Int, from store: Int) {
        let identified = Set(host.peers.lazy.filter { $0.info != nil }.map(\.connection.peer))
        let (news, isToReport, loss) = lockedState.withLock { state in
            let isMissing = error.isNoStore && !state.progress.topics[index].stores.isExpected(at: store, identified: identified)
            if isMissing, state.progress.topics[index].catchUp.dropGaps(ofMissing: store, at: .now()) {
                return (StoreCatchUp.Extent?.none, false, state.progress.topics[index].catchUp.loss(at: .now()))
            }
            let news = state.progress.topics[index].catchUp.failed(
                isTooMuch: error.isTooMuch, store: store, at: .now(), jitter: .random(in: 0...1))
            return (
                news, state.progress.topics[index].catchUp.isFailureToReport, state.progress.topics[index].catchUp.loss(at: .now())
            )
        }
        if let loss { configuration.report(loss) }
        if isToReport { configuration.report(.catchUpFailed("\(error)")) }
        let (level, message): (Logger.Level, Logger.Message) =
            switch news {
            case .all: (.warning, "store node unavailable; messages may be missing")
            case .one where !error.isNoStore: (.info, "one of several store nodes unavailable")
            case .one, nil: (.debug, "store query failed")
            }
        logger.log(level: level, message, metadata: ["topic": "\(configuration.pubsubTopics[index])", "reason": "\(error)"])
    }
}

/// Request ids. Random, so that they reveal nothing about this node.
enum RequestID {
    static func next() -> String { hexString(randomBytes(16)) }
}
