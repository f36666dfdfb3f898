import Core
import StatusProtocol
import Testing
import Waku
import WakuCrypto

@testable import PushClient

/// Clients of filter nodes, which accept 1,000 topics per client: each question has its own answer topic.
@Suite(.timeLimit(.minutes(10))) struct ManyMessagesTests {
    private static let messageCount = 1100
    private let network = TestNetwork()

    private func message(_ number: Int, to registrant: PublicKey) -> OutgoingNotification {
        OutgoingNotification(
            messageID: Array("message \(number)".utf8), chatID: "chat", kind: .message, recipients: [.init(registrant)])
    }

    /// Runs `body` with a relay that has room for 1,000 topics.
    private func sending(
        _ run: @escaping @Sendable () async -> Void, _ body: @escaping @Sendable (Int) async throws -> [DeviceOutcome]
    ) async throws -> [DeviceOutcome] {
        try await withThrowingTaskGroup(of: [DeviceOutcome].self) { group in
            group.addTask {
                await run()
                return []
            }
            group.addTask {
                var outcomes: [DeviceOutcome] = []
                for number in 0..<Self.messageCount { outcomes += try await body(number) }
                return outcomes
            }
            defer { group.cancelAll() }
            while let outcomes = try await group.next() {
                if !outcomes.isEmpty { return outcomes }
            }
            return []
        }
    }

    private func relay() -> TestRelay {
        let relay = network.relay()
        relay.setTopicLimit(1000)
        return relay
    }

    @Test func moreThanAThousandMessagesOfOneClientAreConfirmed() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        let registering = try await StatusPushClient.open(identity: bob, relays: [network.relay()], store: MemoryClientStore())
        let profile = DeviceProfile(platform: .apn, deviceToken: DeviceToken("t"), apnTopic: "a")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await registering.run() }
            registering.setReceiving(true)
            try await registering.register(profile, with: [PushServer(key: server)])
            await registering.waitUntilAdvertised(timeout: .seconds(10))
            group.cancelAll()
        }
        let relay = relay()
        let alice = try await StatusPushClient.open(identity: .generate(), relays: [relay], store: MemoryClientStore())
        alice.setSending(true)
        let outcomes = try await sending({ await alice.run() }) { try await alice.notify(message($0, to: bob.publicKey)) }
        #expect(outcomes.count == Self.messageCount && outcomes.allSatisfy { $0.result == .notified(by: server) })
        #expect(relay.mostWatchedTopics < 10)
    }

    @Test func moreThanAThousandMessagesOfVersion01AreAcknowledged() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        let registering = try await StatusV01PushClient.open(identity: bob, relays: [network.relay()], store: MemoryClientStore())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await registering.run() }
            registering.setReceiving(true)
            try await registering.register(V01DeviceProfile(platform: .apn, deviceToken: DeviceToken("t")), with: [server])
            await registering.waitUntilAdvertised(timeout: .seconds(10))
            group.cancelAll()
        }
        let relay = relay()
        let alice = try await StatusV01PushClient.open(identity: .generate(), relays: [relay], store: MemoryClientStore())
        alice.setSending(true)
        let outcomes = try await sending({ await alice.run() }) { try await alice.notify(message($0, to: bob.publicKey)) }
        #expect(outcomes.count == Self.messageCount && outcomes.allSatisfy { $0.result == .notified(by: server) })
        #expect(relay.mostWatchedTopics < 10)
    }

    // MARK: Tickets

    @Test func ticketsAreBoundedByCountAndAge() {
        var tickets = AnswerTickets<Int>()
        let now = ContinuousClock.now
        let topics = (0..<600).map { ContentTopic(TopicTag(rawValue: UInt32($0))) }
        var dropped: [ContentTopic] = []
        for (number, topic) in topics.enumerated() { dropped += tickets.add(number, on: topic, at: now) }
        #expect(tickets.count == 512 && dropped == Array(topics[..<88]))
        #expect(tickets.tickets(on: topics[0]).isEmpty && tickets.tickets(on: topics[599]).map(\.question) == [599])
        // After ten minutes no more answers are awaited.
        #expect(tickets.add(600, on: topics[0], at: now + .seconds(600)).count == 512)
        #expect(tickets.count == 1)
    }

    @Test func questionsOnOneTopicEndOneByOne() {
        var tickets = AnswerTickets<Int>()
        let topic = ContentTopic(TopicTag(rawValue: 1))
        for number in 0..<2 { _ = tickets.add(number, on: topic, at: .now) }
        let ids = tickets.tickets(on: topic).map(\.id)
        #expect(tickets.remove(ids[0]) == topic && tickets.remove(ids[0]) == nil)
        #expect(tickets.tickets(on: topic).map(\.question) == [1])
    }

    @Test func topicsAreWatchedAsLongAsAnythingIsAwaitedThere() {
        let relay = network.relay()
        let watching = WatchedTopics(relay)
        let (shared, own) = (ContentTopic(TopicTag(rawValue: 1)), ContentTopic(TopicTag(rawValue: 2)))
        watching.retain(shared)
        watching.retain(shared)
        watching.keep([own])
        #expect(relay.watchedTopics == [shared, own])
        watching.retain(own)
        watching.release([shared, own])
        #expect(relay.watchedTopics == [shared, own])
        watching.release([shared])
        #expect(relay.watchedTopics == [own])
        watching.drop([own])
        #expect(relay.watchedTopics.isEmpty)
        watching.retain(own)
        watching.keep([own])
        watching.drop([own])
        #expect(relay.watchedTopics == [own])
    }
}
