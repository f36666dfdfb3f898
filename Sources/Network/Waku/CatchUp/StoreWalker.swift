import Core

/// Decides which queries to send to one store after messages may have been lost on a pubsub topic. Gaps, pages and time come in, queries go
/// out.
///
///     idle ──(gap)──▶ due ──(period passed)──▶ walking ──(page)──▶ walking ──(last page)──▶ idle, or due again
///                                                │  ▲
///                                       (failure)▼  │(backoff passed)
///                                               paused
///
/// A walk reads all pages of all queries for one gap. There is one walk at a time; gaps noted meanwhile are merged into one for the next
/// walk. A walk that fails is resumed where it was. Walks start at least `shortestPeriod` apart. A gap is walked at once, and again after
/// `settling`, since a store takes a moment to store the last of the lost messages.
///
/// Time windows start early, because stores order messages by the senders' clocks, and have no end, because the local clock may be behind.
/// When the local clock turns out to have been ahead, so that windows started too late, the walks of that time are repeated.
struct StoreWalker {
    private struct Gap {
        var from: Moment
        var notedAt: Instant
    }

    private struct Walk {
        let from: Moment
        /// Never empty. The first is in progress, at its cursor.
        var queries: ArraySlice<StoreQuery>
        /// The start of the queries' windows.
        let start: Timestamp
        /// The messages and pages of the first query's present part.
        var messageCount = 0
        var pageCount = 0
        /// The number of the first query's full parts, and the end of the last one.
        var fullParts: (count: Int, end: Timestamp?) = (0, nil)
        /// The timestamp of the last message that the first query returned.
        var lastTimestamp: Timestamp?
        var summary = StoreCatchUp.Summary()

        /// After a full part, the query goes on with the next one if the messages are of a longer time: a store may invent messages without end.
        mutating func beginPart(_ configuration: StoreCatchUp.Configuration) {
            guard messageCount >= configuration.messageLimit, fullParts.count < configuration.fullPartLimit, let lastTimestamp,
                lastTimestamp > (fullParts.end ?? start) + configuration.overlap
            else { return }
            (messageCount, pageCount, fullParts) = (0, 0, (fullParts.count + 1, lastTimestamp))
        }

        mutating func beginNextQuery() {
            queries.removeFirst()
            (messageCount, pageCount, fullParts, lastTimestamp) = (0, 0, (0, nil), nil)
        }
    }

    /// A wall clock that is set back by more than this starts a repeated walk. Smaller than the overlap, which covers the senders' clocks too.
    private static let clockTolerance = Duration.seconds(10)

    let configuration: StoreCatchUp.Configuration
    /// At most two: one that is due, and all later ones merged.
    private var gaps: [Gap] = []
    private var walk: Walk?
    private var lastStart: Instant?
    /// When the first gap that goes first was noted since a walk ended.
    private var behindSince: Instant?
    private var pageSize = StorePageSize()
    /// Failures in a row.
    private(set) var failures = 0
    private var pausedUntil: Instant?
    /// Whether everything that was missing has been read.
    private(set) var isRead = false
    /// The walks since the wall clock was last set back: the earliest start of their windows, and the latest position of the clock.
    private var walked: (from: Instant, wallClockAtEpoch: Timestamp)?

    init(configuration: StoreCatchUp.Configuration) {
        self.configuration = configuration
    }

    /// Whether the query in progress names no content topics, so that its messages may be others' as well.
    var isForAllTopics: Bool { walk?.queries.first?.contentTopics.isEmpty ?? false }

    /// The start of the walk in progress; nil when there is none.
    var walkStart: Moment? { walk?.from }

    /// The wall clock time since which messages may still be missing; nil when none are.
    func missingFrom(at now: Moment) -> Timestamp? {
        (gaps.map(\.from) + [walk?.from].compactMap { $0 }).map { $0.earliestWallClock(at: now) }.min()
    }

    /// Whether to let this store's messages go first: a walk is due or in progress, and has not taken long.
    func isBehind(at now: Instant) -> Bool { behindSince.map { now < $0 + configuration.liveWaitLimit } ?? false }

    mutating func noteGap(from start: Moment, goesFirst: Bool = false, at now: Moment) {
        isRead = false
        // A walk that may not begin soon is not waited for: a relay that comes and goes would hold messages all the time.
        let canWalk = lastStart.map { $0 + configuration.shortestPeriod < now.instant + configuration.liveWaitLimit } ?? true
        if goesFirst, canWalk { behindSince = behindSince ?? now.instant }
        if gaps.count < 2 {
            gaps.append(Gap(from: start, notedAt: now.instant))
        } else {
            gaps[1] = Gap(from: .earliest(gaps[1].from, start), notedAt: now.instant)
        }
    }

    /// Ends the walk, and forgets what may be missing.
    mutating func dropGaps() {
        gaps = []
        walk = nil
        behindSince = nil
        noteReconnection()
    }

    /// Checks whether the wall clock was set back. Call it regularly.
    /// - Returns: Whether a gap was noted.
    mutating func noteClock(at now: Moment) -> Bool {
        guard let walked, walked.wallClockAtEpoch.since(now.wallClockAtEpoch) > Self.clockTolerance else { return false }
        self.walked = nil
        // Bounded, so that a clock that is set back and forth repeatedly does not make windows grow without limit.
        noteGap(from: now - min(now.instant - walked.from, StoreCatchUp.clockLookBack), at: now)
        return true
    }

    /// The node reconnected: ends a pause, and resets the number of consecutive failures.
    mutating func noteReconnection() {
        failures = 0
        pausedUntil = nil
    }

    /// The next action. Returns the same query until ``answered(_:)`` or ``failed(isTooMuch:at:jitter:)`` is called.
    mutating func next(at now: Moment) -> StoreCatchUp.Action {
        _ = noteClock(at: now)
        if let pausedUntil, now.instant < pausedUntil, walk != nil || !gaps.isEmpty { return .wait(until: pausedUntil) }
        if let query = walk?.queries.first { return .query(sized(query)) }
        guard let first = gaps.first else { return .idle }
        if let lastStart, now.instant < lastStart + configuration.shortestPeriod {
            return .wait(until: lastStart + configuration.shortestPeriod)
        }
        return begin(at: now, from: gaps.map(\.from).reduce(first.from, Moment.earliest)).map(StoreCatchUp.Action.query) ?? .idle
    }

    /// Returns nil, and drops the gaps, if there is no topic to query: nothing was learned yet.
    private mutating func begin(at now: Moment, from: Moment) -> StoreQuery? {
        let settling = configuration.settling
        gaps.removeAll { now.instant >= $0.notedAt + settling }
        let start = from.earliestWallClock(at: now) - configuration.overlap
        let queries = self.queries(from: start)
        guard let first = queries.first else {
            gaps = []
            behindSince = nil
            return nil
        }
        lastStart = now.instant
        walked = (
            min(walked?.from ?? from.instant, from.instant), max(walked?.wallClockAtEpoch ?? now.wallClockAtEpoch, now.wallClockAtEpoch)
        )
        walk = Walk(from: from, queries: queries[...], start: start)
        return sized(first)
    }

    private func queries(from start: Timestamp) -> [StoreQuery] {
        let own = StoreQuery.queries(pubsubTopics: [configuration.pubsubTopic], contentTopics: configuration.contentTopics, from: start)
        guard let learned = configuration.learned else { return own }
        guard let topics = learned.topics(limit: StoreCatchUp.learnedTopicLimit) else {
            return own + [StoreQuery(pubsubTopic: configuration.pubsubTopic, startTime: start)]
        }
        return own + StoreQuery.queries(pubsubTopics: [configuration.pubsubTopic], contentTopics: topics, from: start)
    }

    private func sized(_ query: StoreQuery) -> StoreQuery {
        var query = query
        query.pageSize = pageSize.value
        return query
    }

    /// Counts messages of the page that were new.
    mutating func noteFresh(_ count: Int) {
        walk?.summary.messageCount += count
    }

    /// A page was received and its messages were delivered.
    /// - Returns: The walk's result if this was its last page; nil otherwise.
    mutating func answered(_ page: StorePage) -> StoreCatchUp.Summary? {
        guard var current = walk, var query = current.queries.first else { return nil }
        failures = 0
        pageSize.noteSuccess()
        current.summary.pageCount += 1
        current.pageCount += 1
        current.messageCount += max(page.messages.count, page.hashes.count)
        current.lastTimestamp = page.messages.last?.message.timestamp ?? current.lastTimestamp
        current.beginPart(configuration)
        let cutShort = self.cutShort(current, at: page.cursor)
        if cutShort == nil, let cursor = page.cursor {
            query.cursor = cursor
            current.queries[current.queries.startIndex] = query
        } else {
            current.summary.cutShort = current.summary.cutShort ?? cutShort
            current.beginNextQuery()
        }
        walk = current.queries.isEmpty ? nil : current
        guard walk == nil else { return nil }
        behindSince = nil
        isRead = gaps.isEmpty && current.summary.cutShort == nil
        return current.summary
    }

    private func cutShort(_ walk: Walk, at cursor: String?) -> StoreCatchUp.CutShort? {
        guard let cursor else { return nil }
        if cursor == walk.queries.first?.cursor { return .repeatedCursor }
        if walk.messageCount >= configuration.messageLimit { return .messageLimit }
        return walk.pageCount >= configuration.pageLimit ? .pageLimit : nil
    }

    /// The query failed; it is repeated after a backoff.
    ///
    /// - Parameters:
    ///   - isTooMuch: Whether the response was too large or too slow, so that a smaller page may succeed.
    ///   - jitter: A random number from 0 to 1.
    mutating func failed(isTooMuch: Bool, at now: Moment, jitter: Double) {
        if isTooMuch { pageSize.noteTooLarge() }
        failures += 1
        pausedUntil = now.instant + configuration.backoff.delay(afterFailures: failures, jitter: jitter)
        // The store may have deleted the message that the cursor names: continue from the last page's timestamp instead.
        if failures > 1, let index = walk?.queries.startIndex, walk?.queries[index].cursor != nil {
            walk?.queries[index].cursor = nil
            if let lastTimestamp = walk?.lastTimestamp { walk?.queries[index].startTime = lastTimestamp }
        }
    }
}
