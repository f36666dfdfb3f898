@testable import NodeAPI
import Delivery
import NodeMetrics
import PushNode
import RateLimits
import Core
import Storage
import Waku
import WakuCrypto

/// The smallest protocol that registers and notifies devices: it implements only what a protocol must provide.
///
/// Messages on its topic are texts: `register NAME TOKEN` is answered `registered NAME` once that is durable; `notify NAME TEXT` is answered
/// `accepted NAME` once gorush accepted the notification, else `failed NAME`.
struct EchoProtocol: NodeProtocol, WakuTopics, DeliverySource, ProtocolService {
    static let topic = ContentTopic(TopicTag(of: "echo"))
    static let answerTopic = ContentTopic(TopicTag(of: "echo answers"))

    private static let deviceName = Column("name", .bytes)
    private static let version = Column("version", .integer)
    private static let token = Column("token", .bytes)
    static let table = Table(
        "echo_device", columns: [deviceName, version, token], unique: [deviceName],
        sealed: SealedColumn(token, boundTo: [deviceName], label: "echo devices"))

    private static let find = Query(table, [.id, version, deviceName, token], where: [.equal(deviceName)])
    private static let insert = Mutation(table, .insert([deviceName, version, token]))
    private static let update = Mutation(table, .update([version, token], where: [.equal(.id), .equal(version)]))
    private static let delete = Mutation(table, .delete(where: [.equal(.id)]))
    private static let counted = Counter("echo message", .handled, ProtocolLabel.other, KindLabel.registration, OutcomeLabel.taken)

    private let sealer: Sealer?
    private let intake: (any WakuReceiver)?
    let node: NodeServices?

    init(_ node: NodeServices? = nil, sealer: Sealer? = nil) {
        self.node = node
        self.sealer = sealer ?? node?.store.sealer
        intake = node.map { $0.receiver(EchoProtocol(handlerOf: $0)) }
    }

    private init(handlerOf node: NodeServices) {
        (self.node, sealer, intake) = (node, node.store.sealer, nil)
    }

    // NodeProtocol.
    static let description = ProtocolDescription(
        name: "echo", number: ProtocolNumber(rawValue: 100), part: StorePart("echo", tables: [table]),
        metrics: [MetricGroup(counters: [counted])], makeDeliverySource: { EchoProtocol(sealer: $0) })
    var number: ProtocolNumber { Self.description.number }
    var topics: any WakuTopics { self }
    var own: [ContentTopic] { [Self.topic] }
    func makeService(_ node: NodeServices) throws -> any ProtocolService { EchoProtocol(node) }

    // ProtocolService.
    var receiver: any WakuReceiver { intake ?? NoReceiver() }
    func facts() async -> [ProtocolFact] { [ProtocolFact("topic", Self.topic.rawValue)] }

    // DeliverySource.
    let devices = Query(table, [.id, version, deviceName, token], where: [.idAmong])

    func address(of device: Row) throws -> DeviceAddress {
        let token = try sealer?.open(try device.bytes(3), in: Self.table, boundTo: [.bytes(try device.bytes(2))]) ?? []
        return DeviceAddress(version: try device.unsigned(1), platform: .firebase, deviceToken: DeviceToken(bytes: token), apnTopic: "")
    }

    func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent {
        TextContent(String(decoding: payload, as: UTF8.self))
    }

    func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        .change([Self.delete(.integer(row))] + DeliveryStorage.forget(DeviceID(number, row: row)))
    }
}

extension EchoProtocol: WakuHandler {
    struct Command: Sendable {
        let isRegistration: Bool
        let name: [UInt8]
        /// The token, or the text.
        let rest: [UInt8]
    }

    func decode(_ incoming: Incoming, keys: [SymmetricKey], at now: Timestamp) throws(Drop) -> Decoded<Command> {
        let words = incoming.received.message.payload.split(separator: UInt8(ascii: " "), maxSplits: 2).map(Array.init)
        guard words.count == 3 else { throw Drop(.droppedMalformedMessage) }
        let isRegistration = words[0] == Array("register".utf8)
        let command = Command(isRegistration: isRegistration, name: words[1], rest: words[2])
        return Decoded(command, isRegistration ? .registration : .request, from: incoming)
    }

    /// The outcome is the notification to wait for; nil for none.
    func change(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<QueuedDelivery?> {
        let (command, name) = (message.command, Value.bytes(message.command.name))
        return .find(Self.find(name)) { rows in
            guard let node, let sealer else { return .done(nil) }
            if command.isRegistration {
                let token = sealer.seal(command.rest, in: Self.table, boundTo: [name])
                guard let row = rows.first else { return .change([Self.insert(name, .integer(1), token)], nil) }
                let version = try row.integer(1)
                return .change([Self.update(.integer(version + 1), token, .integer(try row.integer(0)), .integer(version))], nil)
            }
            guard let row = rows.first else { return .done(nil) }
            let (device, id) = (DeviceID(number, row: try row.integer(0)), DeliveryID(hashing: message.hash.bytes))
            return node.enqueueOnce(
                id, for: device, at: try address(of: row), TextContent(String(decoding: command.rest, as: UTF8.self)),
                payload: command.rest, expires: now + .seconds(600), now: now, times: message.times)
        }
    }

    func queued(by outcome: QueuedDelivery?) -> [QueuedDelivery] { outcome.map { [$0] } ?? [] }

    func finish(_ message: Decoded<Command>, _ result: Result<QueuedDelivery?, StoreError>) {
        node?.counters.add(Self.counted)
        guard !message.command.isRegistration else { return reply("registered", to: message) }
        guard let delivery = try? result.get()?.delivery else { return reply("failed", to: message) }
        node?.delivery.await(
            AwaitedDeliveries([delivery]) { results in
                reply(results.outcomes[delivery]?.isAccepted == true ? "accepted" : "failed", to: message)
            }
        )
    }

    private func reply(_ word: String, to message: Decoded<Command>) {
        let payload = Array("\(word) ".utf8) + message.command.name
        node?.replies.publish(
            Reply(
                kind: message.kind, expires: false, pubsubTopic: message.pubsubTopic, times: message.times, question: message.hash,
                charge: .unattributed, byteCount: payload.count
            ) { now in [WakuMessage(payload: payload, contentTopic: Self.answerTopic, timestamp: now)] })
    }
}
