import Core
import Waku

/// Decides which store queries to send after a filter node accepted new topics: messages of the last seconds on these topics were sent before
/// the subscription. Topics and time come in, store queries go out.
///
/// Best effort, since clients repeat unanswered requests: each query is sent once and for one page, none after a failure, and none that is
/// older than the window.
struct QueryLookBack {
    /// How far to look back. Clients no longer wait for an answer to older messages.
    static let window = Duration.seconds(5)
    /// Twice the queries needed for 1,000 topics.
    private static let capacity = 200
    private static let rememberedHashCount = 4096

    private struct Entry {
        let query: StoreQuery
        let until: Instant
    }

    private let pubsubTopics: [PubsubTopic]
    private let window: Duration
    private var waiting: ArraySlice<Entry> = []
    private var recent = RecentHashes(capacity: QueryLookBack.rememberedHashCount)

    init(pubsubTopics: [PubsubTopic], window: Duration = QueryLookBack.window) {
        self.pubsubTopics = pubsubTopics
        self.window = window
    }

    /// A node accepted these topics, new to all nodes.
    mutating func add(_ topics: [ContentTopic], at now: Moment) {
        let queries = StoreQuery.queries(pubsubTopics: pubsubTopics, contentTopics: topics, from: now.wallClock - window)
        for query in queries.prefix(max(0, Self.capacity - waiting.count)) {
            waiting.append(Entry(query: query, until: now.instant + window))
        }
    }

    /// The next query; nil when there is none.
    mutating func next(at now: Instant) -> StoreQuery? {
        while let entry = waiting.popFirst() {
            if now < entry.until { return entry.query }
        }
        return nil
    }

    /// A query failed: drops the others.
    mutating func failed() {
        waiting = []
    }

    /// Records messages that filter nodes sent, so that ``fresh(_:)`` leaves them out.
    mutating func noteReceived(_ messages: [ReceivedMessage]) {
        for message in messages { _ = recent.insert(message.hash) }
    }

    /// The messages of a page that were not received before.
    mutating func fresh(_ messages: [ReceivedMessage]) -> [ReceivedMessage] {
        messages.filter { recent.insert($0.hash) }
    }
}
