public import Core
import Foundation
package import CurlClient
public import Logging
import Synchronization
public import Waku

/// A relay by the REST API of one nwaku node: polls messages, fetches lost ones from the store, and publishes.
///
/// Polling loses messages by design: `NwakuAttachment` decides when messages may have been lost, `StoreCatchUp` how to fetch them. Use
/// one such relay per node: two would take each other's messages.
///
/// Messages from polls and from the store are delivered concurrently, so that `deliver` may run twice at the same time, and the same message
/// may arrive several times. The node's own publications are received too: recognize duplicates by the message hash.
public final class NwakuRESTRelay: Relay {
    /// The settings of a relay.
    public struct Configuration: Sendable {
        /// The address of the node's REST API.
        public var address: NodeAddress
        /// The topics to receive messages on.
        public var pubsubTopics: [PubsubTopic]
        /// From the start of one poll to the start of the next.
        public var pollInterval: Duration
        /// The node's cache capacity for pollers, in messages (`--rest-relay-cache-capacity`).
        public var cacheCapacity: Int
        /// The content topics to query from the store after messages may have been lost.
        public var catchUpTopics: [ContentTopic]
        /// Further content topics to query, read each time before.
        public var learnedTopics: (any LearnedContentTopics)?
        /// ``NwakuRESTRelay/seenUntil`` of the previous run, to catch up from. Topics without an entry have nothing to catch up with.
        public var lastSeen: [PubsubTopic: Timestamp]
        /// Whether to deliver messages on a topic of the form of `ContentTopic.init(_:)`; others are dropped. nil delivers all messages.
        public var wants: (@Sendable (TopicTag) -> Bool)?
        /// Called with events to be counted.
        public var report: @Sendable (RelayEvent) -> Void

        /// The defaults fit a node that relays the Status app's shard.
        public init(
            address: NodeAddress, pubsubTopics: [PubsubTopic] = [.statusDefault], pollInterval: Duration = .milliseconds(300),
            cacheCapacity: Int = 50, catchUpTopics: [ContentTopic] = [], lastSeen: [PubsubTopic: Timestamp] = [:],
            wants: (@Sendable (TopicTag) -> Bool)? = nil, report: @escaping @Sendable (RelayEvent) -> Void = { _ in }
        ) {
            self.address = address
            self.pubsubTopics = pubsubTopics
            self.pollInterval = pollInterval
            self.cacheCapacity = cacheCapacity
            self.catchUpTopics = catchUpTopics
            self.lastSeen = lastSeen
            self.wants = wants
            self.report = report
        }
    }

    /// Intervals, which tests shorten.
    struct Timing: Sendable {
        var nodeBackoff = ExponentialBackoff()
        var storeBackoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(60))
        /// The minimum time between the starts of two store walks.
        var catchUpPeriod = Duration.seconds(5)
        /// ``StoreCatchUp/Configuration/settling``
        var settling = Duration.seconds(1)
        /// ``StoreCatchUp/Configuration/liveWaitLimit``
        var liveWaitLimit = Duration.milliseconds(1500)
    }

    package let api: NwakuAPI
    private let topics: [PubsubTopic]
    private let publisher: NwakuPublisher
    private let logger: Logger
    private let wants: (@Sendable (TopicTag) -> Bool)?
    private let report: @Sendable (RelayEvent) -> Void
    private let progress: Mutex<NwakuProgress>
    private let turn = ExclusiveTurn()
    /// The last comparison with the node's clock, and when it was made.
    private let comparison = Mutex<(ahead: Duration, time: Instant)?>(nil)
    /// Where unreadable messages came from: each is in the log once, as a warning.
    private let unreadableSources = Mutex<Set<String>>([])
    private static let comparisonInterval = Duration.seconds(10)

    /// The maximum number of messages in a batch.
    private static let batchLimit = 1000

    /// - Parameter client: May be shared.
    /// - Throws: ``NwakuRelayError`` with `noPubsubTopics` or `invalidSetting`
    package convenience init(configuration: Configuration, client: CurlClient, logger: Logger) throws(NwakuRelayError) {
        try self.init(
            configuration: configuration, api: NwakuAPI(address: configuration.address, client: client), logger: logger,
            timing: Timing())
    }

    /// A relay with connections of its own.
    ///
    /// - Throws: ``NwakuRelayError`` with `noPubsubTopics` or `invalidSetting`
    public convenience init(configuration: Configuration, logger: Logger = Logger(label: "nwaku")) throws(NwakuRelayError) {
        try self.init(configuration: configuration, client: CurlClient(), logger: logger)
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
        wants = configuration.wants
        report = configuration.report
        progress = Mutex(
            NwakuProgress(
                attachment: NwakuAttachment.Configuration(
                    pubsubTopics: configuration.pubsubTopics, pollInterval: configuration.pollInterval,
                    cacheCapacity: configuration.cacheCapacity, backoff: timing.nodeBackoff),
                catchUp: StoreCatchUp.Configuration(
                    contentTopics: configuration.catchUpTopics, learned: configuration.learnedTopics, settling: timing.settling,
                    liveWaitLimit: timing.liveWaitLimit,
                    shortestPeriod: timing.catchUpPeriod, backoff: timing.storeBackoff),
                lastSeen: configuration.lastSeen, at: .now()))
    }

    /// The node's address.
    public var name: String { "\(api.address)" }

    /// By how much the node's clock is ahead of this machine's, by the `Date` of its answers; nil while it does not answer, when the last comparison
    /// may be hours old.
    public var clockAhead: Duration? { state == .attached ? comparison.withLock { $0?.ahead } : nil }

    private func compareClocks(_ date: String?, from start: Date) {
        guard let date, comparison.withLock({ $0.map { Instant.now - $0.time >= Self.comparisonInterval } ?? true }),
            let ahead = HTTPDate.clockAhead(date, from: start, to: Date())
        else { return }
        comparison.withLock { $0 = (ahead, .now) }
    }

    /// Attached while polls succeed.
    public var state: RelayState {
        progress.withLock { $0.attachment.state }
    }

    /// For each topic, the local time up to which all messages were delivered. It stays unchanged while messages may be missing that were not
    /// fetched from the store yet.
    public var seenUntil: [PubsubTopic: Timestamp] {
        progress.withLock { $0.seenUntil(at: .now()) }
    }

    /// Publishes by lightpush, or by relay where the node does not serve it.
    @discardableResult
    public func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        try await publisher.publish(message, on: pubsubTopic)
    }

    /// Looks up messages in the node's store.
    public func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        try await publisher.lookUp(hashes)
    }

    /// Polls and catches up until the task is cancelled. If another call is running, waits for it to end first.
    public func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        await turn.run {
            await self.receive(deliver)
        } whenTaken: {
            logger.info("relay in use: waiting for the other run to end", metadata: ["node": "\(api.address)"])
        }
    }

    private func receive(_ deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        progress.withLock { $0.begin() }
        let gaps = topics.map { _ in WakeUpSignal() }
        await withDiscardingTaskGroup { group in
            group.addTask {
                await self.attach(deliver: deliver) {
                    for gap in gaps { gap.signal() }
                }
            }
            // Concurrently, so that a failure on one topic does not delay others.
            for (index, gap) in gaps.enumerated() {
                group.addTask { await self.catchUp(on: index, deliver: deliver, gaps: gap) }
            }
        }
    }

    // MARK: Polling

    private func attach(deliver: @Sendable ([ReceivedMessage]) async -> Void, gapFound: @Sendable () -> Void) async {
        while !Task.isCancelled {
            let before = state
            switch progress.withLock({ $0.attachment.next(at: .now()) }) {
            case .wait(let until): try? await until.sleep()
            case .subscribe: await subscribe()
            case .poll: await poll(deliver: deliver, gapFound: gapFound)
            }
            if !Task.isCancelled { log(from: before, to: state) }
        }
    }

    private func subscribe() async {
        do {
            try await api.subscribe(to: topics)
            progress.withLock { $0.attachment.subscribed(at: .now()) }
        } catch {
            progress.withLock { $0.attachment.failed(error.message, at: .now(), jitter: .random(in: 0...1)) }
        }
    }

    private func poll(deliver: @Sendable ([ReceivedMessage]) async -> Void, gapFound: @Sendable () -> Void) async {
        let sent = Moment.now()
        var polls: [NwakuAPI.Poll] = []
        var failure: NwakuAPIError?
        do throws(NwakuAPIError) {
            for topic in topics {
                let start = Date()
                let poll = try await api.messages(on: topic, wants: wants)
                compareClocks(poll.date, from: start)
                polls.append(poll)
            }
            note(progress.withLock { $0.resumed(by: sent, at: .now()) }, gapFound)
        } catch {
            failure = error
        }
        // Also after a failure: the node has them no more.
        for (index, poll) in polls.enumerated() {
            noteUnreadable(poll.unreadableCount, in: "poll")
            if poll.unwantedCount > 0 { report(.foreign(poll.unwantedCount)) }
            guard !poll.messages.isEmpty else { continue }
            await letMissedMessagesGoFirst(on: index)
            // In batches, so that a response with a million messages does not delay cancellation.
            for messages in poll.messages.chunks(of: Self.batchLimit).map(Array.init) where !Task.isCancelled {
                progress.withLock { $0.noteReceived(messages, on: index) }
                await deliver(messages)
            }
        }
        if let failure {
            return progress.withLock {
                if failure.code == .status(404) {
                    $0.attachment.subscriptionLost(at: .now(), jitter: .random(in: 0...1))
                } else {
                    $0.attachment.failed(failure.message, at: .now(), jitter: .random(in: 0...1))
                }
            }
        }
        let count = polls.reduce(0) { $0 + $1.elementCount }
        // Messages fetched during cancellation may not have been processed.
        guard !Task.isCancelled else { return }
        if state != .attached { publisher.noteReconnection() }
        note(progress.withLock { $0.polled(messageCount: count, sent: sent, at: .now()) }, gapFound)
    }

    private func note(_ losses: NwakuProgress.Losses, _ gapFound: () -> Void) {
        for _ in 0..<losses.gapCount { report(.gap) }
        if losses.needsCatchUp { gapFound() }
    }

    private func letMissedMessagesGoFirst(on index: Int) async {
        while !Task.isCancelled, progress.withLock({ $0.catchUps[index].isBehind(at: .now) }) {
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Such messages are skipped: without a line in the log, a node of nothing else would look like a quiet one.
    private func noteUnreadable(_ count: Int, in source: String) {
        guard count > 0 else { return }
        let isFirst = unreadableSources.withLock { $0.insert(source).inserted }
        logger.log(
            level: isFirst ? .warning : .debug, "node returned unreadable messages; they are skipped",
            metadata: ["node": "\(api.address)", "source": "\(source)", "messages": .stringConvertible(count)])
    }

    private func log(from before: RelayState, to after: RelayState) {
        switch (before, after) {
        case (.detached, .attached):
            logger.info("relay attached", metadata: ["node": "\(api.address)"])
        case (.attached, .detached(let reason)):
            logger.warning("relay detached", metadata: ["node": "\(api.address)", "reason": "\(reason)"])
        case (.detached(let old), .detached(let reason)) where old != reason:
            logger.warning("failed to attach to relay", metadata: ["node": "\(api.address)", "reason": "\(reason)"])
        default: break
        }
    }

    // MARK: Catching up

    private func catchUp(
        on index: Int, deliver: @Sendable ([ReceivedMessage]) async -> Void, gaps: WakeUpSignal
    ) async {
        var gaps = gaps.makeAsyncIterator()
        while !Task.isCancelled {
            switch progress.withLock({ $0.catchUps[index].next(at: .now()) }) {
            case .idle: _ = await gaps.next()
            // In steps, because a reconnection ends the pause early.
            case .wait(let until): try? await min(until, Instant.now + .seconds(1)).sleep()
            case .query(let query): await ask(query, on: index, deliver: deliver)
            }
        }
    }

    private func ask(_ query: StoreQuery, on index: Int, deliver: @Sendable ([ReceivedMessage]) async -> Void) async {
        do throws(NwakuAPIError) {
            let page = try await api.query(query)
            noteUnreadable(page.unreadableCount, in: "store")
            let fresh = progress.withLock { $0.catchUps[index].fresh(page.messages) }
            if !fresh.isEmpty {
                report(.recovered(fresh.count))
                await deliver(fresh)
            }
            guard !Task.isCancelled else { return }
            let (summary, event) = progress.withLock { progress in
                let summary = progress.catchUps[index].answered(page)
                return (summary, summary == nil ? nil : progress.catchUps[index].event(at: .now()))
            }
            if let event { report(event) }
            guard let summary else { return }
            var metadata: Logger.Metadata = [
                "topic": "\(topics[index])", "messages": .stringConvertible(summary.messageCount),
                "pages": .stringConvertible(summary.pageCount),
            ]
            guard let reason = summary.cutShort else { return logger.info("caught up from the store", metadata: metadata) }
            metadata["reason"] = "\(reason)"
            logger.warning("store not read to the end; messages may be missing", metadata: metadata)
        } catch {
            guard !Task.isCancelled else { return }
            let (news, isToReport) = progress.withLock { progress in
                let news = progress.catchUps[index].failed(isTooMuch: error.isTooMuch, at: .now(), jitter: .random(in: 0...1))
                return (news, progress.catchUps[index].isFailureToReport)
            }
            if isToReport { report(.catchUpFailed("\(error)")) }
            if news == .all {
                logger.warning(
                    "store node unavailable; messages may be missing",
                    metadata: ["node": "\(api.address)", "topic": "\(topics[index])", "reason": "\(error)"])
            }
        }
    }
}
