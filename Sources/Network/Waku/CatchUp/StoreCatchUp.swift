package import Core

/// Decides which queries to send to a store after messages may have been lost on a pubsub topic. Gaps, pages and time come in, queries go
/// out.
///
///     idle ──(gap)──▶ due ──(period passed)──▶ walking ──(page)──▶ walking ──(last page)──▶ idle, or due again
///                                                │  ▲
///                                       (failure)▼  │(backoff passed)
///                                               paused
///
/// A walk reads all pages of all queries for one gap. There is one walk at a time; gaps noted meanwhile are merged into one for the next
/// walk. A walk that fails is resumed where it was. Walks start at least ``Configuration/shortestPeriod`` apart. A gap is walked at once,
/// and again after ``Configuration/settling``, since a store takes a moment to store the last of the lost messages.
///
/// Time windows start early, because stores order messages by the senders' clocks, and have no end, because the local clock may be behind.
/// When the local clock turns out to have been ahead, so that windows started too late, the walks of that time are repeated.
package struct StoreCatchUp {
    package struct Configuration: Sendable {
        package var pubsubTopic = PubsubTopic.statusDefault
        /// The content topics to query; without any, and without ``learned``, gaps are ignored.
        package var contentTopics: [ContentTopic]
        /// Further content topics, read when a walk begins.
        package var learned: (any LearnedContentTopics)?
        /// The assumed maximum difference of clocks: windows start earlier by this.
        package var overlap = Duration.seconds(60)
        /// A gap is closed by a walk that starts this long after it was noted: the time a store takes to store a message.
        package var settling = Duration.seconds(1)
        /// The minimum time between the starts of two walks.
        package var shortestPeriod = Duration.seconds(5)
        /// The maximum number of pages read for one query, counted in full pages. It ends queries to a store that returns pages forever.
        package var pageLimit = 1000
        package var rememberedHashCount = 20_000
        package var backoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(60))

        package init(
            contentTopics: [ContentTopic], learned: (any LearnedContentTopics)? = nil, settling: Duration = .seconds(1),
            shortestPeriod: Duration = .seconds(5), pageLimit: Int = 1000,
            rememberedHashCount: Int = 20_000, backoff: ExponentialBackoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(60))
        ) {
            self.contentTopics = contentTopics
            self.learned = learned
            self.settling = settling
            self.shortestPeriod = shortestPeriod
            self.pageLimit = pageLimit
            self.rememberedHashCount = rememberedHashCount
            self.backoff = backoff
        }
    }

    package enum Action: Hashable {
        case query(StoreQuery)
        case wait(until: Instant)
        /// Wait until a gap is noted.
        case idle
    }

    /// The result of a walk.
    package struct Summary: Hashable {
        /// Messages that were received neither live nor by an earlier walk.
        package var messageCount = 0
        package var pageCount = 0
        /// Whether the page limit ended a query before the store did.
        package var isCutShort = false
    }

    private struct Gap {
        var from: Moment
        var notedAt: Instant
    }

    private struct Walk {
        let from: Moment
        /// Never empty. The first is in progress, at its cursor.
        var queries: ArraySlice<StoreQuery>
        /// The sum of the page sizes that were requested for the first query.
        var requestedCount = 0
        /// The timestamp of the last message that the first query returned.
        var lastTimestamp: Timestamp?
        var summary = Summary()
    }

    /// How far back to look when the stored time of the previous run is unusable because it is in the future.
    package static let clockLookBack = Duration.seconds(3600)
    /// This many failures in a row are reported as an alarm: a store that is found or answers within seconds is none.
    private static let reportedFailures = 3
    /// A wall clock that is set back by more than this starts a repeated walk. Smaller than the overlap, which covers the senders' clocks too.
    private static let clockTolerance = Duration.seconds(10)
    /// The maximum number of learned topics that queries name. With more, one query reads all messages of the pubsub topic, which is fewer
    /// pages than a query for every ``StoreQuery/maximumTopicCount`` topics.
    package static let learnedTopicLimit = 100

    private let configuration: Configuration
    private let contentTopics: Set<ContentTopic>
    /// At most two: one that is due, and all later ones merged.
    private var gaps: [Gap] = []
    private var walk: Walk?
    private var recent: GenerationalCache<MessageHash, Void>
    private var lastStart: Instant?
    private var pageSize = StorePageSize()
    private var failures = 0
    private var pausedUntil: Instant?
    /// The walks since the wall clock was last set back: the earliest start of their windows, and the latest position of the clock.
    private var walked: (from: Instant, wallClockAtEpoch: Timestamp)?

    package init(configuration: Configuration) {
        self.configuration = configuration
        contentTopics = Set(configuration.contentTopics)
        recent = GenerationalCache(capacity: configuration.rememberedHashCount)
    }

    /// Whether the latest failure is the one in a row to report as an alarm.
    package var isFailureToReport: Bool { failures == Self.reportedFailures }

    package var pubsubTopic: PubsubTopic { configuration.pubsubTopic }

    /// The wall clock time since which messages may still be missing; nil when none are.
    package func missingFrom(at now: Moment) -> Timestamp? {
        (gaps.map(\.from) + [walk?.from].compactMap { $0 }).map { $0.earliestWallClock(at: now) }.min()
    }

    /// Records that messages since `start` may be lost.
    /// - Returns: false when there are no content topics to query.
    @discardableResult
    package mutating func noteGap(from start: Moment, at now: Moment) -> Bool {
        guard !contentTopics.isEmpty || configuration.learned != nil else { return false }
        if gaps.count < 2 {
            gaps.append(Gap(from: start, notedAt: now.instant))
        } else {
            gaps[1] = Gap(from: .earliest(gaps[1].from, start), notedAt: now.instant)
        }
        return true
    }

    /// Checks whether the wall clock was set back. Call it regularly.
    /// - Returns: Whether a gap was noted.
    @discardableResult
    package mutating func noteClock(at now: Moment) -> Bool {
        guard let walked, walked.wallClockAtEpoch.since(now.wallClockAtEpoch) > Self.clockTolerance else { return false }
        self.walked = nil
        // Bounded, so that a clock that is set back and forth repeatedly does not make windows grow without limit.
        return noteGap(from: now - min(now.instant - walked.from, Self.clockLookBack), at: now)
    }

    /// The node reconnected: ends a pause, and resets the number of consecutive failures.
    package mutating func noteReconnection() {
        failures = 0
        pausedUntil = nil
    }

    /// Records messages that were received live, so that ``fresh(_:)`` leaves them out.
    package mutating func noteReceived(_ messages: [ReceivedMessage]) {
        for message in messages where isNeeded(message) {
            _ = recent.insert(message.hash)
        }
    }

    private func isNeeded(_ message: ReceivedMessage) -> Bool {
        let topic = message.message.contentTopic
        return contentTopics.contains(topic) || configuration.learned?.contains(topic) ?? false
    }

    /// The next action. Returns the same query until ``answered(_:)`` or ``failed(isTooMuch:at:jitter:)`` is called.
    package mutating func next(at now: Moment) -> Action {
        noteClock(at: now)
        if let pausedUntil, now.instant < pausedUntil, walk != nil || !gaps.isEmpty { return .wait(until: pausedUntil) }
        if let query = walk?.queries.first { return .query(sized(query)) }
        guard let first = gaps.first else { return .idle }
        if let lastStart, now.instant < lastStart + configuration.shortestPeriod {
            return .wait(until: lastStart + configuration.shortestPeriod)
        }
        return begin(at: now, from: gaps.map(\.from).reduce(first.from, Moment.earliest)).map(Action.query) ?? .idle
    }

    /// Returns nil, and drops the gaps, if there is no topic to query: nothing was learned yet.
    private mutating func begin(at now: Moment, from: Moment) -> StoreQuery? {
        let settling = configuration.settling
        gaps.removeAll { now.instant >= $0.notedAt + settling }
        let queries = self.queries(from: from.earliestWallClock(at: now) - configuration.overlap)
        guard let first = queries.first else {
            gaps = []
            return nil
        }
        lastStart = now.instant
        walked = (
            min(walked?.from ?? from.instant, from.instant), max(walked?.wallClockAtEpoch ?? now.wallClockAtEpoch, now.wallClockAtEpoch)
        )
        walk = Walk(from: from, queries: queries[...])
        return sized(first)
    }

    private func queries(from start: Timestamp) -> [StoreQuery] {
        let own = StoreQuery.queries(pubsubTopics: [pubsubTopic], contentTopics: configuration.contentTopics, from: start)
        guard let learned = configuration.learned else { return own }
        guard let topics = learned.topics(limit: Self.learnedTopicLimit) else {
            return own + [StoreQuery(pubsubTopic: pubsubTopic, startTime: start)]
        }
        return own + StoreQuery.queries(pubsubTopics: [pubsubTopic], contentTopics: topics, from: start)
    }

    private func sized(_ query: StoreQuery) -> StoreQuery {
        var query = query
        query.pageSize = pageSize.value
        return query
    }

    /// The messages of a page that were received neither live nor by an earlier walk.
    package mutating func fresh(_ messages: [ReceivedMessage]) -> [ReceivedMessage] {
        let isForAllTopics = walk?.queries.first?.contentTopics.isEmpty ?? false
        let fresh = messages.filter { (!isForAllTopics || isNeeded($0)) && recent.insert($0.hash) }
        walk?.summary.messageCount += fresh.count
        return fresh
    }

    /// A page was received and its messages were delivered.
    /// - Returns: The walk's result if this was its last page; nil otherwise.
    package mutating func answered(_ page: StorePage) -> Summary? {
        guard var current = walk, var query = current.queries.first else { return nil }
        failures = 0
        current.requestedCount += pageSize.value
        pageSize.noteSuccess()
        current.summary.pageCount += 1
        current.lastTimestamp = page.messages.last?.message.timestamp ?? current.lastTimestamp
        // A store that repeats the cursor would never end.
        let hasMore = page.cursor != nil && page.cursor != query.cursor
        if hasMore, current.requestedCount < configuration.pageLimit * StoreQuery.maximumPageSize {
            query.cursor = page.cursor
            current.queries[current.queries.startIndex] = query
        } else {
            current.summary.isCutShort = current.summary.isCutShort || hasMore
            current.queries.removeFirst()
            current.requestedCount = 0
            current.lastTimestamp = nil
        }
        walk = current.queries.isEmpty ? nil : current
        return walk == nil ? current.summary : nil
    }

    /// The query failed; it is repeated after a backoff.
    ///
    /// - Parameters:
    ///   - isTooMuch: Whether the response was too large or too slow, so that a smaller page may succeed.
    ///   - jitter: A random number from 0 to 1.
    /// - Returns: Whether this is the first failure in a row, to be logged.
    package mutating func failed(isTooMuch: Bool = false, at now: Moment, jitter: Double) -> Bool {
        if isTooMuch { pageSize.noteTooLarge() }
        failures += 1
        pausedUntil = now.instant + configuration.backoff.delay(afterFailures: failures, jitter: jitter)
        // The store may have deleted the message that the cursor names: continue from the last page's timestamp instead.
        if failures > 1, let index = walk?.queries.startIndex, walk?.queries[index].cursor != nil {
            walk?.queries[index].cursor = nil
            if let lastTimestamp = walk?.lastTimestamp { walk?.queries[index].startTime = lastTimestamp }
        }
        return failures == 1
    }
}
