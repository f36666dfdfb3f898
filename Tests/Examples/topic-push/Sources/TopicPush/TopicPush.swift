public import WakuPushNode

/// Notifies devices of messages on content topics that their owners chose.
public struct TopicPush: NodeProtocol {
    public static let description = ProtocolDescription(
        name: "topic-push", number: ProtocolNumber(rawValue: 100), part: Devices.part, makeDeliverySource: { Devices(sealer: $0) },
        makeProtocol: { TopicPush($0) })

    private let context: ProtocolContext
    private let learned = LearnedTopics(own: [Registration.topic])

    init(_ context: ProtocolContext) { self.context = context }

    public var topics: any WakuTopics { learned }
    public var registrants: (table: Table, column: Column)? { (Devices.device, Devices.owner) }

    public func makeService(_ node: NodeServices) throws -> any ProtocolService {
        learned.replace(try node.store.read(Devices.allTopics()))
        let handler = TopicPushHandler(context: context, learned: learned, devices: Devices(sealer: node.store.sealer), node: node)
        return TopicPushService(learned: learned, node: node, receiver: node.receiver(handler))
    }
}

/// The running protocol.
struct TopicPushService: ProtocolService {
    let learned: LearnedTopics
    let node: NodeServices
    let receiver: any WakuReceiver

    func expire(at now: Timestamp) async {
        _ = try? await node.store.commit(Devices.expire(at: now))
        try? await reload()
    }
    func reload() async throws(StoreError) { learned.replace(try await node.store.commit(Devices.allTopics())) }
    func registeredElsewhere(_ owner: [UInt8]) { Task { try? await reload() } }
}

/// Handles the messages on its topics.
struct TopicPushHandler: WakuHandler {
    enum Command: Sendable {
        case register(Registration, owner: [UInt8])
        case notify(topic: String)
    }

    let context: ProtocolContext
    let learned: LearnedTopics
    let devices: Devices
    let node: NodeServices

    func decode(_ incoming: Incoming, keys: [SymmetricKey], at now: Timestamp) throws(Drop) -> Decoded<Command> {
        let message = incoming.received.message
        guard message.timestamp > now - context.maximumMessageAge else { throw Drop(.droppedOldRequest) }
        guard message.contentTopic == Registration.topic else {
            return Decoded(.notify(topic: message.contentTopic.rawValue), .request, from: incoming)
        }
        guard let (asked, owner) = Registration.open(message.payload, with: context.identities) else {
            throw Drop(.droppedMalformedMessage)
        }
        return Decoded(.register(asked, owner: owner), .registration, from: incoming)
    }

    func change(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<[QueuedDelivery]> {
        switch message.command {
        case .register(let asked, let owner): devices.register(asked, of: owner)
        case .notify(let topic): devices.notify(message.hash, on: topic, at: now, times: message.times, by: node)
        }
    }

    func queued(by outcome: [QueuedDelivery]) -> [QueuedDelivery] { outcome }

    func finish(_ message: Decoded<Command>, _ result: Result<[QueuedDelivery], StoreError>) {
        if case .success = result, case .register(let asked, _) = message.command {
            learned.insert(asked.topics.map(ContentTopic.init(rawValue:)))
        }
    }
}
