import Core
import Waku

/// Decides which store queries to send for messages of the last seconds that were sent while this node did not receive: before a filter node accepted
/// new topics, or while a gossiping node had no peers. Topics and time come in, store queries go out.
///
/// Best effort, since clients repeat unanswered requests: no query is sent that is older than the window.
///
/// - **Filter nodes.** Each query is sent once and for one page, and none after a failure.
/// - **Gossip.** All messages on the pubsub topic, a few pages: at once, and again when the store has had time to store the last ones. While no
///   store answers, the query is repeated. A later gap takes the place of an earlier one on the same topic.
struct QueryLookBack {
    /// How far to look back. Clients no longer wait for an answer to older messages.
    static let window = Duration.seconds(5)
    /// Twice the queries needed for 1,000 topics.
    private static let capacity = 200
    private static let rememberedHashCount = 4096
    /// Pages of 100 messages for a gap: twenty times the messages of Status' shard in the window.
    private static let pageLimit = 10
    /// The time a store takes to store a message.
    private static let settling = Duration.seconds(1)
    private static let pause = Duration.milliseconds(500)

    enum Action: Hashable {
        case query(StoreQuery)
        case wait(until: Instant)
    }

    private struct Entry {
        var query: StoreQuery
        var due: Instant
        let until: Instant
        /// The number of pages to read.
        var pageCount = 1
        let isGap: Bool
    }

    private let pubsubTopics: [PubsubTopic]
    private let window: Duration
    private var waiting: [Entry] = []
    /// The query that was sent.
    private var current: Entry?
    private var recent = GenerationalCache<MessageHash, Void>(capacity: QueryLookBack.rememberedHashCount)

    init(pubsubTopics: [PubsubTopic], window: Duration = QueryLookBack.window) {
        self.pubsubTopics = pubsubTopics
        self.window = window
    }

    /// A node accepted these topics, new to all nodes.
    mutating func add(_ topics: [ContentTopic], at now: Moment) {
        let queries = StoreQuery.queries(pubsubTopics: pubsubTopics, contentTopics: topics, from: now.wallClock - window)
        for query in queries.prefix(max(0, Self.capacity - waiting.count)) {
            waiting.append(Entry(query: query, due: now.instant, until: now.instant + window, isGap: false))
        }
    }

    /// Gossip on a topic goes on after a time without peers.
    mutating func addGap(on topic: PubsubTopic, at now: Moment) {
        waiting.removeAll { $0.isGap && $0.query.pubsubTopic == topic }
        let query = StoreQuery(pubsubTopic: topic, contentTopics: [], startTime: now.wallClock - window)
        for due in [now.instant, now.instant + Self.settling] {
            waiting.append(Entry(query: query, due: due, until: now.instant + window, pageCount: Self.pageLimit, isGap: true))
        }
    }

    /// The next action; nil when there is none. After a query, call ``answered(_:)`` or ``failed(at:)``.
    mutating func next(at now: Instant) -> Action? {
        waiting.removeAll { $0.until <= now }
        guard let first = waiting.indices.min(by: { waiting[$0].due < waiting[$1].due }) else { return nil }
        guard waiting[first].due <= now else { return .wait(until: waiting[first].due) }
        let entry = waiting.remove(at: first)
        current = entry
        return .query(entry.query)
    }

    /// A page was received.
    mutating func answered(_ page: StorePage) {
        guard var entry = current else { return }
        current = nil
        // A store that repeats the cursor would never end.
        guard entry.pageCount > 1, let cursor = page.cursor, cursor != entry.query.cursor else { return }
        entry.pageCount -= 1
        entry.query.cursor = cursor
        waiting.insert(entry, at: 0)
    }

    /// The query failed: drops those of filter nodes, and pauses those of gaps.
    mutating func failed(at now: Instant) {
        waiting = (waiting + [current].compactMap(\.self)).filter(\.isGap)
        current = nil
        for index in waiting.indices { waiting[index].due = max(waiting[index].due, now + Self.pause) }
    }

    /// Records messages that peers sent, so that ``fresh(_:)`` leaves them out.
    mutating func noteReceived(_ messages: [ReceivedMessage]) {
        for message in messages { _ = recent.insert(message.hash) }
    }

    /// The messages of a page that were not received before.
    mutating func fresh(_ messages: [ReceivedMessage]) -> [ReceivedMessage] {
        messages.filter { recent.insert($0.hash) }
    }
}
