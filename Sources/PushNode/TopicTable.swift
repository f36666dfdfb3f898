import PushStore
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// Which topics concern this node: one look-up on 4 bytes decides whether a message is worth anything more.
final class TopicTable: Sendable {
    enum Match {
        /// The node's own, by public key. Somebody may be asked about on the same 4 bytes.
        case own(alsoQueries: Bool)
        /// Of a registrant.
        case query

        var isOwn: Bool {
            if case .own = self { true } else { false }
        }

        var mayBeQuery: Bool {
            if case .own(alsoQueries: false) = self { false } else { true }
        }
    }

    private let own: Set<TopicTag>
    private let queries = Mutex<Set<TopicTag>>([])

    init(server: PublicKey) {
        own = [TopicTag(of: StatusTopics.personal(server)), TopicTag(of: StatusTopics.partitioned(server))]
    }

    /// Where registrations and requests come in.
    var ownContentTopics: [ContentTopic] { own.map(ContentTopic.init) }

    /// Takes every registrant's topics from the store, beside those that are there.
    func load(from store: Store) throws(StoreError) {
        let tags = try store.read { transaction in
            var tags = Set<TopicTag>(minimumCapacity: try transaction.queryTopicEstimate())
            try transaction.forEachQueryTopic { tags.insert($0) }
            return tags
        }
        queries.withLock { if $0.isEmpty { $0 = tags } else { $0.formUnion(tags) } }
    }

    func match(_ tag: TopicTag) -> Match? {
        let isQuery = queries.withLock { $0.contains(tag) }
        if own.contains(tag) { return .own(alsoQueries: isQuery) }
        return isQuery ? .query : nil
    }

    /// Topics stay until the next start when their last registrant goes: a query there finds nothing.
    func insert(_ topics: QueryTopics) {
        queries.withLock { tags in
            tags.insert(topics.deployed)
            tags.insert(topics.published)
        }
    }

    /// The node's own, and as many of registrants as there is room for.
    func contentTopics(limit: Int) -> [ContentTopic] {
        let tags = queries.withLock { [own] in Array($0.lazy.filter { !own.contains($0) }.prefix(max(0, limit - own.count))) }
        return ownContentTopics + tags.map(ContentTopic.init)
    }

    var queryTopicCount: Int { queries.withLock { $0.count } }
}
