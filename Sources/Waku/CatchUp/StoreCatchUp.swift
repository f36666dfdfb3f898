package import Primitives

/// Decides what to ask the store after messages may have been lost on a pubsub topic. Gaps, pages and time come in, queries go out.
///
///     idle ──(gap)──▶ due ──(time passed)──▶ walking ──(page)──▶ walking ──(last page)──▶ idle, or due again
///                                              │  ▲
///                                      (failed)▼  │(time passed)
///                                             paused
///
/// One walk at a time; gaps that come meanwhile make one gap, for the next. A walk that fails goes on where it was. Walks begin a while
/// apart, however often there are gaps. A gap is walked at once, and once more when the store has had time to keep what was lost last.
///
/// Windows begin early, because stores sort by the senders' clocks, and have no end: the local clock may be behind. When it turns out to have
/// been ahead, so that windows began too late, the walks of that time are done again.
package struct StoreCatchUp {
    package struct Configuration: Hashable, Sendable {
        package var pubsubTopic = PubsubTopic.statusDefault
        /// Without any there is nothing to catch up with.
        package var contentTopics: [ContentTopic]
        /// How far clocks may be off: a window begins earlier by this.
        package var overlap = Duration.seconds(60)
        /// From a gap to the walk that ends it: a store needs a moment to keep a message.
        package var settling = Duration.seconds(1)
        /// From the start of one walk to the start of the next.
        package var shortestPeriod = Duration.seconds(5)
        /// For one query, of whole pages or as many messages on smaller ones: a store that never ends is left.
        package var pageLimit = 1000
        package var rememberedHashCount = 20_000
        package var backoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(60))

        package init(
            contentTopics: [ContentTopic], settling: Duration = .seconds(1), shortestPeriod: Duration = .seconds(5), pageLimit: Int = 1000,
            rememberedHashCount: Int = 20_000, backoff: ExponentialBackoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(60))
        ) {
            self.contentTopics = contentTopics
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
        /// Until there is a gap.
        case idle
    }

    /// How a walk went.
    package struct Summary: Hashable {
        /// That had come neither by polling nor by an earlier walk.
        package var messageCount = 0
        package var pageCount = 0
        /// Whether the store had more to tell than is listened to.
        package var isCutShort = false

        package init(messageCount: Int = 0, pageCount: Int = 0, isCutShort: Bool = false) {
            self.messageCount = messageCount
            self.pageCount = pageCount
            self.isCutShort = isCutShort
        }
    }

    private struct Gap {
        var from: Moment
        var notedAt: Instant
    }

    private struct Walk {
        let from: Moment
        /// The first is being asked, with its cursor; never empty.
        var queries: ArraySlice<StoreQuery>
        /// So many messages its pages had room for.
        var roomOfQuery = 0
        /// The last message of the query's last page.
        var reached: Timestamp?
        var summary = Summary()
    }

    /// How far back to look when the time of an earlier life is no guide, because it is yet to come.
    package static let clockLookBack = Duration.seconds(3600)
    /// A clock that is set back by more is noticed. Together with what senders are off, less than the overlap.
    private static let clockTolerance = Duration.seconds(10)

    private let configuration: Configuration
    private let contentTopics: Set<ContentTopic>
    /// Two at most: one that is due, and those after it as one.
    private var gaps: [Gap] = []
    private var walk: Walk?
    private var recent: RecentHashes
    private var lastStart: Instant?
    private var pageSize = StorePageSize()
    private var failures = 0
    private var pausedUntil: Instant?
    /// What was walked since the clock was last set back: since when, and how far ahead the clock was at most.
    private var walked: (from: Instant, wallClockAtEpoch: Timestamp)?

    package init(configuration: Configuration) {
        self.configuration = configuration
        contentTopics = Set(configuration.contentTopics)
        recent = RecentHashes(capacity: configuration.rememberedHashCount)
    }

    package var pubsubTopic: PubsubTopic { configuration.pubsubTopic }

    /// Since when messages may still be missing, by the clock of now; nil when none are.
    package func missingFrom(at now: Moment) -> Timestamp? {
        (gaps.map(\.from) + [walk?.from].compactMap { $0 }).map { $0.earliestWallClock(at: now) }.min()
    }

    /// Messages since then may be lost.
    /// - Returns: Whether that matters.
    @discardableResult
    package mutating func noteGap(from start: Moment, at now: Moment) -> Bool {
        guard !contentTopics.isEmpty else { return false }
        if gaps.count < 2 {
            gaps.append(Gap(from: start, notedAt: now.instant))
        } else {
            gaps[1] = Gap(from: .earliest(gaps[1].from, start), notedAt: now.instant)
        }
        return true
    }

    /// To be told now and then, also when nothing else is: the clock may have been set.
    /// - Returns: Whether that makes a gap.
    @discardableResult
    package mutating func noteClock(at now: Moment) -> Bool {
        guard let walked, walked.wallClockAtEpoch.since(now.wallClockAtEpoch) > Self.clockTolerance else { return false }
        self.walked = nil
        // A clock that goes back and forth for ever does not make windows that grow for ever.
        return noteGap(from: now - min(now.instant - walked.from, Self.clockLookBack), at: now)
    }

    /// The node is back: what failed may work now, and is worth a word again when it does not.
    package mutating func noteReconnection() {
        failures = 0
        pausedUntil = nil
    }

    /// These came by polling: they are no news when the store tells them.
    package mutating func notePolled(_ messages: [ReceivedMessage]) {
        for message in messages where contentTopics.contains(message.message.contentTopic) {
            _ = recent.insert(message.hash)
        }
    }

    /// The same query again until it is answered or failed.
    package mutating func next(at now: Moment) -> Action {
        noteClock(at: now)
        if let pausedUntil, now.instant < pausedUntil, walk != nil || !gaps.isEmpty { return .wait(until: pausedUntil) }
        if let query = walk?.queries.first { return .query(sized(query)) }
        guard let first = gaps.first else { return .idle }
        if let lastStart, now.instant < lastStart + configuration.shortestPeriod {
            return .wait(until: lastStart + configuration.shortestPeriod)
        }
        return .query(begin(at: now, from: gaps.map(\.from).reduce(first.from, Moment.earliest)))
    }

    private mutating func begin(at now: Moment, from: Moment) -> StoreQuery {
        gaps.removeAll { now.instant >= $0.notedAt + configuration.settling }
        let queries = StoreQuery.queries(
            pubsubTopics: [pubsubTopic], contentTopics: configuration.contentTopics,
            from: from.earliestWallClock(at: now) - configuration.overlap)
        lastStart = now.instant
        walked = (
            min(walked?.from ?? from.instant, from.instant), max(walked?.wallClockAtEpoch ?? now.wallClockAtEpoch, now.wallClockAtEpoch)
        )
        walk = Walk(from: from, queries: queries[...])
        return sized(queries[0])
    }

    private func sized(_ query: StoreQuery) -> StoreQuery {
        var query = query
        query.pageSize = pageSize.value
        return query
    }

    /// Those of a page that neither polling nor a walk brought before.
    package mutating func fresh(_ messages: [ReceivedMessage]) -> [ReceivedMessage] {
        let fresh = messages.filter { recent.insert($0.hash) }
        walk?.summary.messageCount += fresh.count
        return fresh
    }

    /// The page was read, and handed over.
    /// - Returns: When it was the last of the walk, how that went.
    package mutating func answered(_ page: StorePage) -> Summary? {
        guard var current = walk, var query = current.queries.first else { return nil }
        failures = 0
        current.roomOfQuery += pageSize.value
        pageSize.wasGood()
        current.summary.pageCount += 1
        current.reached = page.messages.last?.message.timestamp ?? current.reached
        // A store that gives the same cursor again would never end.
        let goesOn = page.cursor != nil && page.cursor != query.cursor
        if goesOn, current.roomOfQuery < configuration.pageLimit * StoreQuery.maximumPageSize {
            query.cursor = page.cursor
            current.queries[current.queries.startIndex] = query
        } else {
            current.summary.isCutShort = current.summary.isCutShort || goesOn
            current.queries.removeFirst()
            current.roomOfQuery = 0
            current.reached = nil
        }
        walk = current.queries.isEmpty ? nil : current
        return walk == nil ? current.summary : nil
    }

    /// The query failed, for whatever reason; it is asked again later.
    /// - Parameter isTooMuch: The answer was too long, or too slow: it may be shorter.
    /// - Returns: Whether it is the first in a row, and so worth a word.
    package mutating func failed(isTooMuch: Bool = false, at now: Moment, jitter: Double) -> Bool {
        if isTooMuch { pageSize.wasTooMuch() }
        failures += 1
        pausedUntil = now.instant + configuration.backoff.delay(afterFailures: failures, jitter: jitter)
        // The message that the cursor names may be gone, and with it every page behind: then the time of the last page leads on.
        if failures > 1, let index = walk?.queries.startIndex, walk?.queries[index].cursor != nil {
            walk?.queries[index].cursor = nil
            if let reached = walk?.reached { walk?.queries[index].startTime = reached }
        }
        return failures == 1
    }
}
