public import CurlClient
public import Logging
import Synchronization
public import Waku

/// One nwaku node, by its REST API: polls what comes in, asks the store for what polling lost, and publishes.
///
/// Polling loses messages by design: ``NwakuAttachment`` tells when, ``StoreCatchUp`` what to do about it. A node has room for one such
/// relay: two steal each other's messages.
///
/// What the store brings is delivered beside what polling brings, so that `deliver` may run twice at once, and the same message may come
/// more than once. A node's own publications come back too: recognise messages by their hash.
public final class NwakuRelay: Relay {
    public struct Configuration: Sendable {
        public var address: NodeAddress
        public var pubsubTopics: [PubsubTopic]
        /// From the start of one poll to the start of the next.
        public var pollInterval: Duration
        /// How many messages the node keeps for its pollers (`--rest-relay-cache-capacity`).
        public var cacheCapacity: Int
        /// What is looked up in the store after messages may have been lost: the node's own topics.
        public var catchUpTopics: [ContentTopic]
        /// Until when all was seen, in an earlier life (``NwakuRelay/seenUntil``); nil when nothing can have been missed.
        public var lastSeen: Timestamp?

        public init(
            address: NodeAddress, pubsubTopics: [PubsubTopic] = [.statusDefault], pollInterval: Duration = .milliseconds(300),
            cacheCapacity: Int = 50, catchUpTopics: [ContentTopic] = [], lastSeen: Timestamp? = nil
        ) {
            self.address = address
            self.pubsubTopics = pubsubTopics
            self.pollInterval = pollInterval
            self.cacheCapacity = cacheCapacity
            self.catchUpTopics = catchUpTopics
            self.lastSeen = lastSeen
        }
    }

    /// What tests make shorter.
    struct Timing: Sendable {
        var nodeBackOff = BackOff()
        var storeBackOff = BackOff(initial: .seconds(1), maximum: .seconds(60))
        /// From one walk through the store to the next, at least.
        var catchUpPeriod = Duration.seconds(5)
    }

    private struct Decisions {
        var attachment: NwakuAttachment
        var catchUp: StoreCatchUp
    }

    public let api: NwakuAPI
    private let topics: [PubsubTopic]
    private let publisher: NwakuPublisher
    private let logger: Logger
    private let decisions: Mutex<Decisions>

    /// - Parameter client: May be shared with others.
    /// - Throws: ``NwakuRelayError`` with `noPubsubTopics` or `invalidSetting`
    public convenience init(configuration: Configuration, client: CurlClient, logger: Logger) throws(NwakuRelayError) {
        try self.init(
            configuration: configuration, api: NwakuAPI(address: configuration.address, client: client), logger: logger,
            timing: Timing())
    }

    init(configuration: Configuration, api: NwakuAPI, logger: Logger, timing: Timing) throws(NwakuRelayError) {
        guard !configuration.pubsubTopics.isEmpty else {
            throw NwakuRelayError(code: .noPubsubTopics, message: "there is no pubsub topic to listen on: give one like /waku/2/rs/16/32")
        }
        guard configuration.pollInterval > .zero, configuration.cacheCapacity > 0 else {
            throw NwakuRelayError(code: .invalidSetting, message: "the poll interval and the node's cache capacity must be above 0")
        }
        self.api = api
        self.logger = logger
        topics = configuration.pubsubTopics
        publisher = NwakuPublisher(api: api, logger: logger)
        let attachment = NwakuAttachment(
            configuration: NwakuAttachment.Configuration(
                pollInterval: configuration.pollInterval, cacheCapacity: configuration.cacheCapacity, backOff: timing.nodeBackOff),
            lastSeen: configuration.lastSeen, at: .now())
        let catchUp = StoreCatchUp(
            configuration: StoreCatchUp.Configuration(
                pubsubTopics: configuration.pubsubTopics, contentTopics: configuration.catchUpTopics, shortestPeriod: timing.catchUpPeriod,
                backOff: timing.storeBackOff))
        decisions = Mutex(Decisions(attachment: attachment, catchUp: catchUp))
    }

    public var state: RelayState {
        decisions.withLock { $0.attachment.state }
    }

    /// Until when, by the local clock, everything was handed over: what to go on from in the next life. It stands still while messages may be
    /// missing that the store has not told yet.
    public var seenUntil: Timestamp? {
        decisions.withLock { min($0.attachment.polledUntil, $0.catchUp.missingFrom ?? $0.attachment.polledUntil) }
    }

    public func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) {
        try await publisher.publish(message, on: pubsubTopic)
    }

    /// One at a time.
    public func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        let (gaps, gapFound) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        await withDiscardingTaskGroup { group in
            group.addTask { await self.attach(deliver: deliver, gapFound: gapFound) }
            group.addTask { await self.catchUp(deliver: deliver, gaps: gaps) }
        }
    }

    // MARK: Polling

    private func attach(
        deliver: @Sendable ([ReceivedMessage]) async -> Void, gapFound: AsyncStream<Void>.Continuation
    ) async {
        while !Task.isCancelled {
            let before = state
            switch decisions.withLock({ $0.attachment.next(at: .now()) }) {
            case .wait(let until): await Self.sleep(until: until)
            case .subscribe: await subscribe()
            case .poll: await poll(deliver: deliver, gapFound: gapFound)
            }
            if !Task.isCancelled { log(from: before, to: state) }
        }
    }

    private func subscribe() async {
        do {
            try await api.subscribe(to: topics)
            decisions.withLock { $0.attachment.subscribed(at: .now()) }
        } catch {
            decisions.withLock { $0.attachment.failed(error.message, at: .now(), jitter: .random(in: 0...1)) }
        }
    }

    private func poll(deliver: @Sendable ([ReceivedMessage]) async -> Void, gapFound: AsyncStream<Void>.Continuation) async {
        let sent = Moment.now()
        var count = 0
        do {
            for topic in topics {
                let poll = try await api.messages(on: topic)
                count += poll.elementCount
                if poll.messages.count < poll.elementCount {
                    logger.debug("unreadable messages dropped", metadata: ["count": "\(poll.elementCount - poll.messages.count)"])
                }
                if !poll.messages.isEmpty { await deliver(poll.messages) }
            }
        } catch {
            decisions.withLock {
                if error.code == .status(404) {
                    $0.attachment.forgotten(at: .now(), jitter: .random(in: 0...1))
                } else {
                    $0.attachment.failed(error.message, at: .now(), jitter: .random(in: 0...1))
                }
            }
            return
        }
        let wasDetached = state != .attached
        // What was fetched as this ends may not have been taken any more.
        guard !Task.isCancelled else { return }
        let isGap = decisions.withLock { decisions in
            if wasDetached { decisions.catchUp.noteReconnection() }
            guard let lostFrom = decisions.attachment.polled(messageCount: count, sent: sent) else { return false }
            decisions.catchUp.noteGap(from: lostFrom)
            return true
        }
        if wasDetached { publisher.nodeIsBack() }
        if isGap { gapFound.yield() }
    }

    private func log(from before: RelayState, to after: RelayState) {
        switch (before, after) {
        case (.detached, .attached):
            logger.info("relay attached", metadata: ["node": "\(api.address)"])
        case (.attached, .detached(let reason)):
            logger.warning("relay detached", metadata: ["node": "\(api.address)", "reason": "\(reason)"])
        case (.detached(let old), .detached(let reason)) where old != reason:
            logger.warning("relay not attached", metadata: ["node": "\(api.address)", "reason": "\(reason)"])
        default: break
        }
    }

    // MARK: Catching up

    private func catchUp(deliver: @Sendable ([ReceivedMessage]) async -> Void, gaps: AsyncStream<Void>) async {
        var gaps = gaps.makeAsyncIterator()
        while !Task.isCancelled {
            switch decisions.withLock({ $0.catchUp.next(at: .now()) }) {
            case .idle: _ = await gaps.next()
            // In steps, because a reconnection ends the pause.
            case .wait(let until): await Self.sleep(until: min(until, Moment.now().uptime + .seconds(1)))
            case .query(let query): await ask(query, deliver: deliver)
            }
        }
    }

    private func ask(_ query: StoreQuery, deliver: @Sendable ([ReceivedMessage]) async -> Void) async {
        do {
            let page = try await api.query(query)
            let fresh = decisions.withLock { $0.catchUp.fresh(page.messages) }
            if !fresh.isEmpty { await deliver(fresh) }
            guard !Task.isCancelled, let summary = decisions.withLock({ $0.catchUp.answered(page) }) else { return }
            logger.info(
                "caught up from the store",
                metadata: [
                    "messages": "\(summary.messageCount)", "pages": "\(summary.pageCount)", "cut-short": "\(summary.isCutShort)",
                ])
        } catch {
            guard !Task.isCancelled else { return }
            if decisions.withLock({ $0.catchUp.failed(at: .now(), jitter: .random(in: 0...1)) }) {
                logger.warning(
                    "store can't be asked, messages may be missing", metadata: ["node": "\(api.address)", "reason": "\(error)"])
            }
        }
    }

    /// Returns early when the task is cancelled: its loop sees that.
    private static func sleep(until uptime: Duration) async {
        try? await Task.sleep(for: uptime - Moment.now().uptime)
    }
}
