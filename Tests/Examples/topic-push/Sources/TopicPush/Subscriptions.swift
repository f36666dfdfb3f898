import WakuPushNode

/// The tables: devices, and the topics of each.
enum Subscriptions {
    static let devices = RegistrationTable<Registration>("topic_push_device", of: ProtocolNumber(rawValue: 100)) { owner, device, end in
        let topics = Set(device?.topics ?? []).sorted()
        return [remove(owner)] + topics.map { insert(.text($0), owner, .integer(end.rawValue)) }
    }
    private static let topic = Column("topic", .text)
    private static let owner = Column("owner", .bytes)
    private static let end = Column("end_at", .integer)
    static let table = Table(
        "topic_push_subscription", columns: [topic, owner, end], unique: [topic, owner],
        indexes: [Index("topic_push_subscription_owner", on: [owner])])

    private static let owners = Query(table, [owner], where: [.equal(topic)])
    private static let topics = Query(table, [.column(topic)], isDistinct: true)
    private static let ownTopics = Query(table, [topic], where: [.equal(owner)])
    private static let insert = Mutation(table, .upsert([topic, owner, end]))
    private static let remove = Mutation(table, .delete(where: [.equal(owner)]))
    private static let removeEnded = Mutation(table, .delete(where: [.less(end)]))

    static func notify(
        _ message: Decoded<TopicPushHandler.Command>, on topic: String, lifetime: Duration, at now: Timestamp, by node: NodeServices
    ) -> StoreCommand<[QueuedDelivery]> {
        .find(owners(.text(topic))) { rows in
            devices.notify(
                try rows.map { try $0.bytes(0) }, of: message.hash, lifetime: lifetime, at: now, times: message.times, by: node)
        }
    }

    static func expire(at now: Timestamp, in store: any Store) async throws(StoreError) {
        try await devices.expire(at: now, in: store)
        try await store.commit(.change([removeEnded(.integer(now.rawValue))]))
    }

    static func topics(of owner: [UInt8]? = nil) -> StoreCommand<[ContentTopic]> {
        .find(owner.map { ownTopics(.bytes($0)) } ?? topics()) { .done(try $0.map { ContentTopic(rawValue: try $0.text(0)) }) }
    }
}
