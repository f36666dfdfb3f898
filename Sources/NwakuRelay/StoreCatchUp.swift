import Waku

/// Decides what to ask the store after messages may have been lost. Gaps, pages and time come in, queries go out.
///
///     idle ──(gap)──▶ due ──(time passed)──▶ walking ──(page)──▶ walking ──(last page)──▶ idle, or due again
///                                              │  ▲
///                                      (failed)▼  │(time passed)
///                                             paused
///
/// One walk at a time; gaps that come meanwhile make one gap, for the next. A walk that fails goes on where it was. Walks begin a while
/// apart, however often there are gaps. Windows overlap, because stores sort by the senders' clocks.
struct StoreCatchUp {
    struct Configuration: Hashable, Sendable {
        var pubsubTopics: [PubsubTopic]
        /// Without any there is nothing to catch up with.
        var contentTopics: [ContentTopic]
        /// How far senders' clocks may be off: a window begins earlier and ends later by this.
        var overlap = Duration.seconds(60)
        /// From the start of one walk to the start of the next.
        var shortestPeriod = Duration.seconds(5)
        /// For one query: a store that never ends is left.
        var pageLimit = 1000
        var rememberedHashCount = 20_000
        var backOff = BackOff(initial: .seconds(1), maximum: .seconds(60))
    }

    enum Action: Hashable {
        case query(StoreQuery)
        case wait(until: Duration)
        /// Until there is a gap.
        case idle
    }

    /// How a walk went.
    struct Summary: Hashable {
        /// That were not handed over by an earlier walk.
        var messageCount = 0
        var pageCount = 0
        /// Whether the store had more to tell than is listened to.
        var isCutShort = false
    }

    private struct Walk {
        let from: Timestamp
        /// The first is being asked, with its cursor; never empty.
        var queries: ArraySlice<StoreQuery>
        var pagesOfQuery = 0
        var summary = Summary()
    }

    private let configuration: Configuration
    private var gap: Timestamp?
    private var walk: Walk?
    private var recent: RecentHashes
    private var lastStart: Duration?
    private var failures = 0
    private var pausedUntil: Duration = .zero

    init(configuration: Configuration) {
        self.configuration = configuration
        recent = RecentHashes(capacity: configuration.rememberedHashCount)
    }

    /// Since when messages may still be missing; nil when none are.
    var missingFrom: Timestamp? {
        [gap, walk?.from].compactMap { $0 }.min()
    }

    /// Messages since then may be lost.
    mutating func noteGap(from start: Timestamp) {
        guard !configuration.contentTopics.isEmpty else { return }
        gap = min(gap ?? start, start)
    }

    /// The node is back: what failed may work now, and is worth a word again when it does not.
    mutating func noteReconnection() {
        failures = 0
        pausedUntil = .zero
    }

    /// The same query again until it is answered or failed.
    mutating func next(at now: Moment) -> Action {
        if now.uptime < pausedUntil, walk != nil || gap != nil { return .wait(until: pausedUntil) }
        if let query = walk?.queries.first { return .query(query) }
        guard let gap else { return .idle }
        if let lastStart, now.uptime < lastStart + configuration.shortestPeriod {
            return .wait(until: lastStart + configuration.shortestPeriod)
        }
        let queries = StoreQuery.queries(
            pubsubTopics: configuration.pubsubTopics, contentTopics: configuration.contentTopics, from: gap - configuration.overlap,
            to: now.clock + configuration.overlap)
        guard let first = queries.first else { return .idle }
        self.gap = nil
        lastStart = now.uptime
        walk = Walk(from: gap, queries: queries[...])
        return .query(first)
    }

    /// Those of a page that no walk handed over before.
    mutating func fresh(_ messages: [ReceivedMessage]) -> [ReceivedMessage] {
        let fresh = messages.filter { recent.insert($0.hash) }
        walk?.summary.messageCount += fresh.count
        return fresh
    }

    /// The page was read, and handed over.
    /// - Returns: When it was the last of the walk, how that went.
    mutating func answered(_ page: StorePage) -> Summary? {
        guard var current = walk, var query = current.queries.first else { return nil }
        failures = 0
        current.pagesOfQuery += 1
        current.summary.pageCount += 1
        // A store that gives the same cursor again would never end.
        let goesOn = page.cursor != nil && page.cursor != query.cursor
        if goesOn, current.pagesOfQuery < configuration.pageLimit {
            query.cursor = page.cursor
            current.queries[current.queries.startIndex] = query
        } else {
            current.summary.isCutShort = current.summary.isCutShort || goesOn
            current.queries.removeFirst()
            current.pagesOfQuery = 0
        }
        walk = current.queries.isEmpty ? nil : current
        return walk == nil ? current.summary : nil
    }

    /// The query failed, for whatever reason; it is asked again later.
    /// - Returns: Whether it is the first in a row, and so worth a word.
    mutating func failed(at now: Moment, jitter: Double) -> Bool {
        failures += 1
        pausedUntil = now.uptime + configuration.backOff.delay(failures: failures, jitter: jitter)
        return failures == 1
    }
}
