import Foundation
import WakuPushNode

/// The stored registrations: tables, the commands that read and change them, and the addresses for delivery.
struct Devices: DeliverySource {
    static let part = StorePart("topic-push", tables: [device, subscription])
    static let device = Table(
        "topic_push_device", columns: [owner, version, end, sealed], unique: [owner],
        sealed: SealedColumn(sealed, boundTo: [owner], label: "topic-push devices"))
    private static let subscription = Table(
        "topic_push_subscription", columns: [topic, owner, end], unique: [topic, owner],
        indexes: [Index("topic_push_subscription_owner", on: [owner])])
    static let owner = Column("owner", .bytes)
    private static let topic = Column("topic", .text)
    private static let version = Column("version", .integer)
    private static let end = Column("end_at", .integer)
    private static let sealed = Column("sealed", .bytes)

    private static let count = Query(device, [.count])
    private static let find = Query(device, [.id, version, owner, end, sealed], where: [.equal(owner)])
    private static let owners = Query(subscription, [owner], where: [.equal(topic)])
    private static let topics = Query(subscription, [.column(topic)], isDistinct: true)
    private static let insert = Mutation(device, .insert([owner, version, end, sealed]))
    private static let update = Mutation(device, .update([version, end, sealed], where: [.equal(.id), .equal(version)]))
    private static let subscribe = Mutation(subscription, .upsert([topic, owner, end]))
    private static let unsubscribe = Mutation(subscription, .delete(where: [.equal(owner)]))
    private static let remove = Mutation(device, .delete(where: [.equal(.id), .equal(version)]))
    private static let removeEnded = [device, subscription].map { Mutation($0, .delete(where: [.less(end)])) }

    let sealer: Sealer
    let number = TopicPush.description.number
    let devices = Query(device, [.id, version, owner, end, sealed], where: [.idAmong])

    init(sealer: Sealer) { self.sealer = sealer }

    private func registration(in row: Row) throws -> Registration {
        let json = try sealer.open(try row.bytes(4), in: Self.device, boundTo: [.bytes(try row.bytes(2))])
        return try JSONDecoder().decode(Registration.self, from: Data(json))
    }

    func address(of row: Row) throws -> DeviceAddress {
        let registered = try registration(in: row)
        return DeviceAddress(
            version: try row.unsigned(1), platform: .firebase, deviceToken: DeviceToken(registered.token), apnTopic: "",
            endsAt: Timestamp(rawValue: registered.end * 1_000_000_000))
    }

    func content(of payload: [UInt8], to row: Row) throws -> any NotificationContent { TextContent(try registration(in: row).text) }

    func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        .change([Self.remove(.integer(row), .integer(Int64(bitPattern: version)))] + DeliveryStorage.forget(DeviceID(number, row: row)))
    }

    /// Rows stay until the latest end that their owner named, so that earlier registrations can't be replayed.
    func register(_ asked: Registration, of owner: [UInt8]) -> StoreCommand<[QueuedDelivery]> {
        .read([Self.find(.bytes(owner)), Self.count()]) { found in
            let row = found[0].first
            if let row, try row.integer(1) >= asked.version { return .done([]) }
            if row == nil, try found[1][0].integer(0) >= 10_000 { return .done([]) }
            let end = Value.integer(max(asked.end * 1_000_000_000, try row?.integer(3) ?? 0))
            let sealed = sealer.seal(Array(try JSONEncoder().encode(asked)), in: Self.device, boundTo: [.bytes(owner)])
            let stored =
                if let row {
                    Self.update(.integer(asked.version), end, sealed, .integer(try row.integer(0)), .integer(try row.integer(1)))
                } else {
                    Self.insert(.bytes(owner), .integer(asked.version), end, sealed)
                }
            let subscriptions = Set(asked.topics).sorted().map { Self.subscribe(.text($0), .bytes(owner), end) }
            return .change([stored, Self.unsubscribe(.bytes(owner))] + subscriptions, [])
        }
    }

    func notify(_ hash: MessageHash, on topic: String, at now: Timestamp, times: MessageTimes?, by node: NodeServices)
        -> StoreCommand<[QueuedDelivery]>
    {
        @Sendable func delivery(to row: Row) throws -> StoreCommand<QueuedDelivery?> {
            node.enqueueOnce(
                DeliveryID(hashing: hash.bytes, try row.bytes(2)), for: DeviceID(number, row: try row.integer(0)), at: try address(of: row),
                try content(of: [], to: row), expires: now + .seconds(3600), now: now, times: times)
        }
        return .find(Self.owners(.text(topic))) { owners in
            .read(try owners.map { Self.find(.bytes(try $0.bytes(0))) }) { found in
                StoreCommand.each(try found.joined().map(delivery)).map { $0.compactMap(\.self) }
            }
        }
    }

    static func expire(at now: Timestamp) -> StoreCommand<Void> { .change(removeEnded.map { $0(.integer(now.rawValue)) }) }

    static func allTopics() -> StoreCommand<[ContentTopic]> {
        .find(topics()) { .done(try $0.map { ContentTopic(rawValue: try $0.text(0)) }) }
    }
}
