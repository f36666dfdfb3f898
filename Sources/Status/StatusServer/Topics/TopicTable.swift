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
    }

    /// The identities that each own topic belongs to, by their index.
    private let owners: [TopicTag: [Int]]
    private let queries = Mutex(RegistrantTopics())

    /// - Parameter servers: the public keys of the node's identities, in the order of their indexes.
    init(servers: [PublicKey]) {
        var owners: [TopicTag: [Int]] = [:]
        for (index, server) in servers.enumerated() {
            for topic in [StatusTopics.personal(server), StatusTopics.partitioned(server)] {
                owners[TopicTag(of: topic), default: []].append(index)
            }
        }
        self.owners = owners
    }

    /// The topics of registrations and requests.
    package var own: [ContentTopic] { owners.keys.map(ContentTopic.init) }

    /// Reads all registrants' topics from the store. Topics without a registrant are dropped.
    func load(from store: any Store) throws(StoreError) {
        queries.withLock { $0.beginRead() }
        var found: Set<TopicTag>?
        defer { queries.withLock { $0.endRead(found) } }
        found = try TopicKeyStorage.allTopics(in: store)
    }

    /// Whether so many topics were added since the last read that it is worth another.
    var isGrown: Bool { queries.withLock { $0.isGrown } }

    package func contains(_ tag: TopicTag) -> Bool {
        owners[tag] != nil || queries.withLock { $0.tags.contains(tag) }
    }

    /// The indexes of the identities to which messages on a topic may be encrypted; empty for topics of registrants.
    func owners(of tag: TopicTag) -> [Int] { owners[tag] ?? [] }

    func match(_ tag: TopicTag) -> Match? {
        let isQuery = queries.withLock { $0.tags.contains(tag) }
        if owners[tag] != nil { return .own(alsoQueries: isQuery) }
        return isQuery ? .query : nil
    }

    /// Adds topics, after their registration was committed. They remain until ``load(from:)`` finds no registrant of theirs; queries on them find
    /// nothing.
    func insert(_ topics: QueryTopics) {
        queries.withLock { $0.insert([topics.deployed, topics.published]) }
    }

    /// The node's own topics, and those of registrants up to the limit.
    package func contentTopics(limit: Int) -> [ContentTopic] {
        let tags = queries.withLock { [owners] in
            Array($0.tags.lazy.filter { owners[$0] == nil }.prefix(max(0, limit - owners.count)))
        }
        return own + tags.map(ContentTopic.init)
    }

    package var otherCount: Int { queries.withLock { $0.tags.count } }
}

/// The topics of registrants, those in the store and at most an eighth more. A value without I/O.
///
///     reading: tags, added ──(end of the read)──▶ tags = found ∪ added
///
/// A registrant that ended is not removed here: others may have the same topic, and other nodes may know them. Instead all topics are read again, once
/// enough were added: so a flood of registrations that displace each other does not grow memory.
struct RegistrantTopics {
    /// Fewer are not worth a read.
    private static let leastGrowth = 1_024

    private(set) var tags: Set<TopicTag> = []
    /// Added since the first of the reads in progress began: a read may have missed them.
    private var added: Set<TopicTag> = []
    private var reads = 0
    /// The number of tags after the last read.
    private var readCount = 0

    var isGrown: Bool { reads == 0 && tags.count - readCount > max(Self.leastGrowth, readCount / 8) }

    mutating func insert(_ new: [TopicTag]) {
        tags.formUnion(new)
        if reads > 0 { added.formUnion(new) }
    }

    mutating func beginRead() {
        reads += 1
    }

    /// - Parameter found: nil if the read failed.
    mutating func endRead(_ found: Set<TopicTag>?) {
        if let found {
            tags = found.union(added)
            readCount = tags.count
        }
        reads -= 1
        if reads == 0 { added = [] }
    }
}
