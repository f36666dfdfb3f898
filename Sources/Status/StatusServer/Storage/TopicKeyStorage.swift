package import StatusProtocol
import Storage
package import Waku
import WakuCrypto

/// Query topics of registrants, and their stored keys.
struct TopicKeyStorage: Sendable {
    /// Limit of the registrants of one topic. More are an attack: the newest are ignored, so that none of them displaces the attacked registrant.
    private static let candidateLimit = 16
    /// Limit of the registrations in which they are looked for: those of as many registrants with the default limit of installations each.
    private static let candidateRowLimit = 16 * 100

    let sealer: Sealer

    init(_ sealer: Sealer) {
        self.sealer = sealer
    }

    private static let findByTopic = find(StatusStorage.queryTopic)
    private static let findByPublishedTopic = find(StatusStorage.publishedQueryTopic)

    /// The oldest rows first. Ordered by the output: for the column, PostgreSQL may read the table in the order of its ids, up to the topic's rows.
    private static func find(_ topic: Column) -> Query {
        Query(StatusStorage.registration, [StatusStorage.keyHash, .id], where: [.equal(topic)], order: [.output(1)])
    }

    /// The topic strings that match this tag, of the registrants with the oldest rows.
    static func queryTopics(withTag tag: TopicTag) -> StoreCommand<[(topic: String, registrant: KeyHash)]> {
        let value = Value.integer(Int64(tag.rawValue))
        return .read([findByTopic(value, limit: candidateRowLimit), findByPublishedTopic(value, limit: candidateRowLimit)]) { found in
            let (deployed, published) = (try oldest(found[0]), try oldest(found[1]))
            return .done(
                deployed.map { (StatusTopics.query($0), $0) } + published.map { (StatusTopics.publishedQuery($0), $0) })
        }
    }

    /// The first registrants of these rows.
    private static func oldest(_ rows: [Row]) throws -> [KeyHash] {
        var (registrants, seen) = ([KeyHash](), Set<KeyHash>())
        for row in rows where registrants.count < candidateLimit {
            guard let keyHash = KeyHash(bytes: try row.bytes(0)), seen.insert(keyHash).inserted else { continue }
            registrants.append(keyHash)
        }
        return registrants
    }

    private static let highestID = Query(StatusStorage.registration, [Query.Output.maximum(.id)])
    private static let topics = Query(
        StatusStorage.registration, [.column(StatusStorage.queryTopic)], where: [.present(StatusStorage.queryTopic)],
        index: StatusStorage.queryTopicIndex)
    private static let publishedTopics = Query(
        StatusStorage.registration, [.column(StatusStorage.publishedQueryTopic)], where: [.present(StatusStorage.publishedQueryTopic)],
        index: StatusStorage.publishedQueryTopicIndex)

    /// All query topics. Blocks, as the store's `scan` does.
    static func allTopics(in store: any Store) throws(StoreError) -> Set<TopicTag> {
        let highest = try store.read(StoreCommand.find(highestID()) { .done(try $0[0].optionalInteger(0) ?? 0) })
        // Ids of damaged rows may be any number.
        var tags = Set<TopicTag>(minimumCapacity: Int(2 * min(max(0, highest), 5_000_000)))
        for query in [topics, publishedTopics] {
            try store.scan(query()) { row in
                tags.insert(TopicTag(rawValue: UInt32(truncatingIfNeeded: try row.integer(0))))
                return true
            }
        }
        return tags
    }

    // MARK: Keys

    private static let findKey = Query(StatusStorage.topicKey, [StatusStorage.sealedKey], where: [.equal(.id)])
    private static let findKeys = Query(StatusStorage.topicKey, [.id], where: [.idAmong])
    private static let writeKey = Mutation(StatusStorage.topicKey, .upsert([.id, StatusStorage.sealedKey]))
    private static let removeKeys = Mutation(StatusStorage.topicKey, .delete(where: [.idAmong]))

    /// The stored key of a topic string.
    func key(of topic: String) -> StoreCommand<SymmetricKey?> {
        .find(Self.findKey(.integer(Self.id(topic)))) { rows in
            .done(try rows.first.flatMap { sealer.openKey(try $0.bytes(0), in: StatusStorage.topicKey, boundTo: [.text(topic)]) })
        }
    }

    func keep(_ key: SymmetricKey, of topic: String) -> Change {
        Self.writeKey(.integer(Self.id(topic)), sealer.seal(key, in: StatusStorage.topicKey, boundTo: [.text(topic)]))
    }

    /// Stores no key for a registrant that has unregistered in the meantime: nothing would delete it.
    func keep(_ key: SymmetricKey, of topic: String, ifRegistered registrant: KeyHash) -> StoreCommand<Void> {
        Registrations.installationCount(of: registrant).then { count in .change(count > 0 ? [keep(key, of: topic)] : []) }
    }

    /// Deletes the keys of a registrant's topics.
    static func forget(_ keyHash: KeyHash) -> Change {
        removeKeys(ids: [id(StatusTopics.query(keyHash)), id(StatusTopics.publishedQuery(keyHash))])
    }

    static func id(_ topic: String) -> Int64 {
        Keccak256.hash(Array(topic.utf8)).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }

    // MARK: Registrants without a key

    private static let page = Query(
        StatusStorage.registration, [.id, StatusStorage.keyHash], where: [.less(.id), .present(StatusStorage.queryTopic)],
        order: [.descending(.id)])

    /// Registrants whose query topic, in its deployed form, has no key yet: the newest rows first.
    ///
    /// - Parameter id: reads rows before this one; nil for all.
    /// - Returns: distinct registrants, and the row id to continue before; nil at the end.
    static func registrantsWithoutKey(before id: Int64?, limit: Int) -> StoreCommand<(registrants: [KeyHash], next: Int64?)> {
        .find(page(.integer(id ?? .max), limit: limit)) { rows in
            var (candidates, seen) = ([(keyHash: KeyHash, key: Int64)](), Set<KeyHash>())
            for row in rows {
                guard let keyHash = KeyHash(bytes: try row.bytes(1)), seen.insert(keyHash).inserted else { continue }
                candidates.append((keyHash, Self.id(StatusTopics.query(keyHash))))
            }
            let next = rows.count < limit ? nil : try rows.last?.integer(0)
            return .find(findKeys(ids: candidates.map(\.key))) { [candidates] found in
                let known = Set(try found.map { try $0.integer(0) })
                return .done((candidates.filter { !known.contains($0.key) }.map(\.keyHash), next))
            }
        }
    }
}

/// The topics of queries about a registrant.
package struct QueryTopics: Hashable, Sendable {
    package let deployed: TopicTag
    package let published: TopicTag

    package init(of keyHash: KeyHash) {
        deployed = TopicTag(of: StatusTopics.query(keyHash))
        published = TopicTag(of: StatusTopics.publishedQuery(keyHash))
    }
}
