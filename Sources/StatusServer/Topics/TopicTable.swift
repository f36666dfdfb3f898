import PushNode
import StatusProtocol
import Storage
import Synchronization
package import Waku
import WakuCrypto

/// Which topics concern this node: one look-up on 4 bytes decides whether a message is worth anything more.
package final class TopicTable: WakuTopics {
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

    private let ownTags: Set<TopicTag>
    private let queries = Mutex<Set<TopicTag>>([])

    init(server: PublicKey) {
        ownTags = [TopicTag(of: StatusTopics.personal(server)), TopicTag(of: StatusTopics.partitioned(server))]
    }

    /// Where registrations and requests come in.
    package var own: [ContentTopic] { ownTags.map(ContentTopic.init) }

    /// Takes every registrant's topics from the store, beside those that are there.
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

    /// Topics stay until the next start when their last registrant goes: a query there finds nothing.
    func insert(_ topics: QueryTopics) {
        queries.withLock { tags in
            tags.insert(topics.deployed)
            tags.insert(topics.published)
        }
    }

    /// The node's own, and as many of registrants as there is room for.
    package func contentTopics(limit: Int) -> [ContentTopic] {
        let tags = queries.withLock { [ownTags] in
            Array($0.lazy.filter { !ownTags.contains($0) }.prefix(max(0, limit - ownTags.count)))
        }
        return own + tags.map(ContentTopic.init)
    }

    package var otherCount: Int { queries.withLock { $0.count } }
}
