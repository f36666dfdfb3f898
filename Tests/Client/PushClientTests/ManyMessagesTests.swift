import Core
import StatusProtocol
import Testing
import Waku
import WakuCrypto

@testable import PushClient

/// Clients of filter nodes, which accept 1,000 topics per client, here 100: each question has its own answer topic.
@Suite(.timeLimit(.minutes(10))) struct ManyMessagesTests {
    private static let messageCount = 150
    private let network = TestNetwork()

    @Test(arguments: ClientVersion.allCases)
    func moreMessagesOfOneClientThanANodeAcceptsTopicsAreConfirmed(version: ClientVersion) async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(version, with: [server], bob)
        let relay = network.relay()
        relay.setTopicLimit(100)
        try await network.client(version, relay: relay).whileRunning { alice in
            alice.setSending(true)
            for number in 0..<Self.messageCount {
                let outcomes = try await alice.notify(.to(bob.publicKey, id: Array("message \(number)".utf8)))
                #expect(outcomes.map(\.result) == [.notified(by: server)])
            }
        }
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
