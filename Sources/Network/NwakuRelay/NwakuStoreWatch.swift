package import Core
package import CurlClient
import Foundation
package import Logging
import Synchronization
package import Waku

/// Receives content topics by querying a node's store repeatedly: for command-line clients that share a node with a daemon. By polling they
/// would take the daemon's messages.
///
/// Ephemeral messages, and messages whose timestamp is off by more than 20 s, are not received: stores do not keep them.
package final class NwakuStoreWatch: Relay {
    package struct Configuration: Sendable {
        package var address: NodeAddress
        package var pubsubTopics: [PubsubTopic]
        /// Messages with older timestamps are not received.
        package var startTime: Timestamp
        package var interval: Duration
        /// The maximum number of pages per query in one sweep: 100,000 messages. A store may go on without end.
        var pageLimit = 1000
        /// The pause after sweeps that reached ``pageLimit``.
        var unfinishedPause = ExponentialBackoff(initial: .seconds(20), maximum: .seconds(300))

        package init(
            address: NodeAddress, pubsubTopics: [PubsubTopic] = [.statusDefault], startTime: Timestamp = .now(),
            interval: Duration = .milliseconds(200)
        ) {
            self.address = address
            self.pubsubTopics = pubsubTopics
            self.startTime = startTime
            self.interval = interval
        }
    }

    private struct Topic {
        /// Differs when the topic was dropped and added again.
        let id: Int
        /// When the last successful sweep of the topic started, or the time up to which it read everything; the start time for a new topic.
        var sweptUntil: Timestamp
    }

    private struct Sweep {
        var topics: [ContentTopic: Topic] = [:]
        /// How often topics were added.
        var additionCount = 0
        var state = RelayState.detached("the store was not queried yet")
        var failures = 0
        /// Consecutive sweeps that ended at the page limit.
        var unfinished = 0
        var recent = GenerationalCache<MessageHash, Void>(capacity: 20_000)
        var pageSize = StorePageSize()
        /// By how much the node's clock is ahead, by its last answer.
        var clockAhead: Duration?
    }

    package let api: NwakuAPI
    private let configuration: Configuration
    private let publisher: NwakuPublisher
    private let logger: Logger
    private let sweep: Mutex<Sweep>

    /// Sweeps overlap by this, for senders whose clocks are off.
    private static let overlap = Duration.seconds(60)
    private static let backoff = ExponentialBackoff()

    /// - Parameters:
    ///   - contentTopics: The content topics to receive; ``watch(_:)`` adds more.
    ///   - client: May be shared.
    package init(configuration: Configuration, contentTopics: [ContentTopic] = [], client: CurlClient, logger: Logger) {
        let api = NwakuAPI(address: configuration.address, client: client)
        self.configuration = configuration
        self.api = api
        self.logger = logger
        publisher = NwakuPublisher(api: api, logger: logger)
        sweep = Mutex(Sweep())
        watch(contentTopics)
    }

    /// Adds content topics, received from the start time on.
    package func watch(_ contentTopics: [ContentTopic]) {
        sweep.withLock { watch in
            for topic in contentTopics where watch.topics[topic] == nil {
                watch.additionCount += 1
                watch.topics[topic] = Topic(id: watch.additionCount, sweptUntil: configuration.startTime)
            }
        }
    }

    /// Stops querying the store for messages on these topics.
    package func unwatch(_ contentTopics: [ContentTopic]) {
        sweep.withLock { watch in
            for topic in contentTopics { watch.topics[topic] = nil }
        }
    }

    /// Consecutive sweeps that ended at the page limit.
    var unfinishedSweepCount: Int { sweep.withLock { $0.unfinished } }

    package var state: RelayState {
        sweep.withLock { $0.state }
    }

    /// By how much the node's clock is ahead of this machine's, by the `Date` of its last answer to a query.
    package var clockAhead: Duration? { sweep.withLock { $0.clockAhead } }

    @discardableResult
    package func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        try await publisher.publish(message, on: pubsubTopic)
    }

    package func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        try await publisher.lookUp(hashes)
    }

    package func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        while !Task.isCancelled {
            let began = ContinuousClock.now
            var pause = configuration.interval
            do throws(NwakuAPIError) {
                let isWhole = try await sweep(deliver: deliver)
                let unfinished = sweep.withLock { watch in
                    watch.unfinished = isWhole ? 0 : watch.unfinished + 1
                    return watch.unfinished
                }
                if !isWhole {
                    // From the end of the sweep, which may have taken longer than the pause.
                    let delay = configuration.unfinishedPause.delay(afterFailures: unfinished, jitter: .random(in: 0...1))
                    pause = began.duration(to: .now) + delay
                    if unfinished == 1 { logger.warning("store query does not end", metadata: ["node": "\(api.address)"]) }
                }
            } catch {
                guard !Task.isCancelled else { return }
                let failures = sweep.withLock { watch in
                    watch.state = .detached(error.message)
                    watch.failures += 1
                    if error.isTooMuch { watch.pageSize.noteTooLarge() }
                    return watch.failures
                }
                pause = max(pause, Self.backoff.delay(afterFailures: failures, jitter: .random(in: 0...1)))
                if failures == 1 {
                    logger.warning("store query failed", metadata: ["node": "\(api.address)", "reason": "\(error)"])
                }
            }
            try? await Task.sleep(until: began + pause, clock: .continuous)
        }
    }

    /// Queries all topics and pages once.
    ///
    /// - Returns: false when a query reached the page limit.
    private func sweep(deliver: @Sendable ([ReceivedMessage]) async -> Void) async throws(NwakuAPIError) -> Bool {
        var isWhole = true
        let now = Timestamp.now()
        let watched = sweep.withLock(\.topics)
        // Without topics there is nothing to query: whether the node answers is known by its health.
        if watched.isEmpty, state != .attached { _ = try await api.health() }
        // Topics that were queried together have the same time. New ones, on which answers may be awaited, come first.
        let groups = Dictionary(grouping: watched) { $0.value.sweptUntil }.mapValues { $0.map(\.key) }
        for (sweptUntil, topics) in groups.sorted(by: { $0.key < $1.key }) {
            let start = max(configuration.startTime, sweptUntil - Self.overlap)
            let queries = StoreQuery.queries(pubsubTopics: configuration.pubsubTopics, contentTopics: topics, from: start)
            // The time up to which the queries that reached the page limit returned messages; nil when none did.
            var cutAt: Timestamp?
            for query in queries {
                if let end = try await read(query, deliver: deliver) { cutAt = min(cutAt ?? now, end) }
            }
            // The next sweep reads the rest of a query from where it ended.
            let end = cutAt.map { max($0, sweptUntil) } ?? now
            sweep.withLock { watch in
                // The messages on topics that were dropped meanwhile were skipped.
                for topic in topics where watch.topics[topic]?.id == watched[topic]?.id { watch.topics[topic]?.sweptUntil = end }
            }
            if cutAt != nil { isWhole = false }
        }
        sweep.withLock { watch in
            watch.failures = 0
            watch.state = .attached
        }
        return isWhole
    }

    /// Reads the pages of a query.
    ///
    /// - Returns: If it reached the page limit, the time up to which it read everything.
    private func read(
        _ query: StoreQuery, deliver: @Sendable ([ReceivedMessage]) async -> Void
    ) async throws(NwakuAPIError) -> Timestamp? {
        var query = query
        var latest = query.startTime ?? configuration.startTime
        for _ in 1...configuration.pageLimit {
            query.pageSize = sweep.withLock(\.pageSize.value)
            let start = Date()
            let (page, date) = try await api.datedPage(query)
            let ahead = date.flatMap { HTTPDate.clockAhead($0, from: start, to: Date()) }
            let fresh = sweep.withLock { watch in
                watch.clockAhead = ahead
                watch.pageSize.noteSuccess()
                // Without messages on topics that were dropped during the query.
                return page.messages.filter { watch.topics[$0.message.contentTopic] != nil && watch.recent.insert($0.hash) }
            }
            if !fresh.isEmpty { await deliver(fresh) }
            guard let cursor = page.cursor, cursor != query.cursor else { return nil }
            query.cursor = cursor
            latest = page.messages.last?.message.timestamp ?? query.startTime ?? configuration.startTime
        }
        return latest
    }
}
