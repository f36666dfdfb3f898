import NodeAPI
import StatusProtocol
import Storage
import Synchronization
package import Waku
import WakuCrypto

/// The topics that this node listens on. A lookup of 4 bytes decides whether a message is processed.
package final class TopicTable: WakuTopics {
    enum Match {
        /// A topic of the node's own key. A registrant's query topic may have the same 4 bytes.
        case own(alsoQueries: Bool)
        /// A registrant's query topic.
        case query

        var isOwn: Bool {
            if case .own = self { true } else { false }
        }
    }

    private let ownTags: Set<TopicTag>
    private let queries = Mutex<Set<TopicTag>>([])

    init(server: PublicKey) {
        ownTags = [TopicTag(of: StatusTopics.personal(server)), TopicTag(of: StatusTopics.partitioned(server))]
    }

    /// The topics of registrations and requests.
    package var own: [ContentTopic] { ownTags.map(ContentTopic.init) }

    /// Adds all registrants' topics from the store.
    func load(from store: any Store) throws(StoreError) {
        let tags = try TopicKeyStorage.allTopics(in: store)
        queries.withLock { if $0.isEmpty { $0 = tags } else { $0.formUnion(tags) } }
    }

    package func contains(_ tag: TopicTag) -> Bool {
        ownTags.contains(tag) || queries.withLock { $0.contains(tag) }
    }

    func isOwn(_ tag: TopicTag) -> Bool { ownTags.contains(tag) }

    func match(_ tag: TopicTag) -> Match? {
        let isQuery = queries.withLock { $0.contains(tag) }
        if ownTags.contains(tag) { return .own(alsoQueries: isQuery) }
        return isQuery ? .query : nil
    }

    /// Adds topics. They remain until the next start even when their last registrant is removed; queries on them find nothing.
    func insert(_ topics: QueryTopics) {
        queries.withLock { tags in
            tags.insert(topics.deployed)
            tags.insert(topics.published)
        }
    }

    /// The node's own topics, and those of registrants up to the limit.
    package func contentTopics(limit: Int) -> [ContentTopic] {
        let tags = queries.withLock { [ownTags] in
            Array($0.lazy.filter { !ownTags.contains($0) }.prefix(max(0, limit - ownTags.count)))
        }
        return own + tags.map(ContentTopic.init)
    }

    package var otherCount: Int { queries.withLock { $0.count } }
}
