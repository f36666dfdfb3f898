import Primitives
import Waku

/// Decides what to ask a store about registrants' topics that a filter node was just told: the queries of the last seconds, which came
/// while nobody sent them here. Topics and time come in, store queries go out.
///
/// As best effort: a client asks again when it gets no answer. So each query goes out once and for one page, none after the first that
/// fails, and none that is older than what it looks for.
struct QueryLookBack {
    /// Queries of so long ago are looked for: nobody waits for the answer to an older one.
    static let window = Duration.seconds(5)
    /// As many as 1,000 topics need, twice.
    private static let capacity = 200
    private static let rememberedHashCount = 4096

    private struct Entry {
        let query: StoreQuery
        let until: Instant
    }

    private let pubsubTopics: [PubsubTopic]
    private var waiting: ArraySlice<Entry> = []
    private var recent = RecentHashes(capacity: QueryLookBack.rememberedHashCount)

    init(pubsubTopics: [PubsubTopic]) {
        self.pubsubTopics = pubsubTopics
    }

    /// A node was told of these topics.
    mutating func add(_ topics: [ContentTopic], at now: Moment) {
        let queries = StoreQuery.queries(pubsubTopics: pubsubTopics, contentTopics: topics, from: now.wallClock - Self.window)
        for query in queries.prefix(max(0, Self.capacity - waiting.count)) {
            waiting.append(Entry(query: query, until: now.instant + Self.window))
        }
    }

    /// Each once; nil while there is nothing to ask.
    mutating func next(at now: Instant) -> StoreQuery? {
        while let entry = waiting.popFirst() {
            if now < entry.until { return entry.query }
        }
        return nil
    }

    /// There is no store, or it does not want to be asked now.
    mutating func failed() {
        waiting = []
    }

    /// These came from filter nodes: they are no news when a store tells them.
    mutating func brought(_ messages: [ReceivedMessage]) {
        for message in messages { _ = recent.insert(message.hash) }
    }

    /// Those of a page that did not come before.
    mutating func fresh(_ messages: [ReceivedMessage]) -> [ReceivedMessage] {
        messages.filter { recent.insert($0.hash) }
    }
}
