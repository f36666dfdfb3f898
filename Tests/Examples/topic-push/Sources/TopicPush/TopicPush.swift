public import WakuPushNode

/// Notifies devices of messages on content topics that their owners chose.
public struct TopicPush: NodeProtocol {
    public static let description = ProtocolDescription(
        name: "topic-push", registrations: Subscriptions.devices, tables: [Subscriptions.table],
        options: [maximum, rate, lifetime], learnedTopics: { Subscriptions.topics() }, makeProtocol: { TopicPush(context: $0) })
    static let maximum = ProtocolOption.limit(
        "topic-push-max-registrations", .registrationCount, "10000", "Maximum number of devices, ended ones included.")
    static let rate = ProtocolOption.limit(
        "topic-push-registrations", .registrationsBySender, "1/min burst 20", "Maximum rate of an owner's registrations.")
    static let lifetime = ProtocolOption.count(
        "topic-push-lifetime", 3600, in: 1...86_400, "Time in seconds after which a notification is given up.", isReloadable: true)

    let context: ProtocolContext
    private let learned = LearnedTopics(own: [Registration.topic])

    public var topics: any WakuTopics { learned }

    public func makeService(_ node: NodeServices) throws -> any ProtocolService {
        learned.replace(try node.store.read(Subscriptions.topics()))
        let handler = TopicPushHandler(context: context, learned: learned, node: node)
        return TopicPushService(learned: learned, node: node, receiver: node.receiver(handler))
    }
}

/// The running protocol.
struct TopicPushService: ProtocolService {
    let learned: LearnedTopics
    let node: NodeServices
    let receiver: any WakuReceiver

    func expire(at now: Timestamp) async {
        try? await Subscriptions.expire(at: now, in: node.store)
        try? await reload()
    }
    func reload() async throws(StoreError) { try await learned.replace(by: Subscriptions.topics(), in: node.store) }
    func registeredElsewhere(_ owner: [UInt8]) { Task { try? await learned.insert(node.store.commit(Subscriptions.topics(of: owner))) } }
}

/// Handles the messages on its topics.
struct TopicPushHandler: WakuHandler {
    enum Command: Sendable {
        case register(SealedRegistration<Registration>)
        case notify(topic: String)
    }
    typealias Outcome = (result: RegistrationResult?, queued: [QueuedDelivery])

    let context: ProtocolContext
    let learned: LearnedTopics
    let node: NodeServices

    func decode(_ incoming: Incoming, keys: [SymmetricKey], at now: Timestamp) throws(Drop) -> Decoded<Command> {
        let message = incoming.received.message
        guard message.timestamp > now - context.maximumMessageAge else { throw Drop(.droppedOldRequest) }
        guard message.contentTopic == Registration.topic else {
            return Decoded(.notify(topic: message.contentTopic.rawValue), .request, from: incoming)
        }
        return Decoded(.register(try node.open(incoming, with: context.identities, at: now)), .registration, from: incoming)
    }

    func change(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<Outcome> {
        switch message.command {
        case .register(let registration): Subscriptions.devices.store(registration, by: node).map { ($0, []) }
        case .notify(let topic):
            Subscriptions.notify(
                message, on: topic, lifetime: .seconds(context.options[TopicPush.lifetime]), at: now, by: node
            ).map { (nil, $0) }
        }
    }

    func queued(by outcome: Outcome) -> [QueuedDelivery] { outcome.queued }

    func finish(_ message: Decoded<Command>, _ result: Result<Outcome, StoreError>) {
        let outcome = try? result.get()
        switch message.command {
        case .register(let registration):
            if outcome?.result == .stored { learned.insert((registration.device?.topics ?? []).map(ContentTopic.init(rawValue:))) }
            node.answer(registration, outcome?.result ?? .failed, to: message)
        case .notify: if outcome != nil { node.finished(message) }
        }
    }
}
