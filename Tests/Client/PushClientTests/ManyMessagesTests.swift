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

    // MARK: Topics

    @Test func questionsAreBoundedByCountAndAge() {
        var answers = AnswerTopics<Int>()
        let now = ContinuousClock.now
        let topics = (0..<600).map { ContentTopic(TopicTag(rawValue: UInt32($0))) }
        var dropped: [ContentTopic] = []
        for (number, topic) in topics.enumerated() { dropped += answers.add(number, on: topic, at: now).dropped }
        #expect(answers.count == 512 && dropped == Array(topics[..<88]))
        #expect(answers[topics[0]].questions.isEmpty && answers[topics[599]].questions.map(\.question) == [599])
        // After ten minutes no more answers are awaited.
        #expect(answers.add(600, on: topics[0], at: now + .seconds(600)).dropped.count == 512)
        #expect(answers.count == 1)
    }

    @Test func questionsWithACallerAreNotDisplaced() {
        var answers = AnswerTopics<Int>()
        let topic = ContentTopic(TopicTag(rawValue: 1))
        _ = answers.add(-1, on: topic, at: nil)
        for number in 0..<600 { _ = answers.add(number, on: topic, at: .now) }
        #expect(answers.count == 513 && answers[topic].questions.first?.question == -1)
    }

    @Test func questionsOnOneTopicEndOneByOne() {
        var answers = AnswerTopics<Int>()
        let topic = ContentTopic(TopicTag(rawValue: 1))
        for number in 0..<2 { _ = answers.add(number, on: topic, at: .now) }
        let ids = answers[topic].questions.map(\.id)
        #expect(answers.remove(ids[0]) == topic && answers.remove(ids[0]) == nil)
        #expect(answers[topic].questions.map(\.question) == [1])
    }

    @Test func registrantsOfOneTopicAreFollowedEach() {
        let topic = ContentTopic(TopicTag(rawValue: 1))
        let (alice, bob) = (newKey(), newKey())
        var watched = AnswerTopics<Int>()
        for registrant in [alice, bob, alice] { watched.add(registrant, on: topic) }
        #expect(watched[topic].registrants == [alice, bob])
        watched[topic].registrants.removeAll { $0 == alice }
        #expect(watched[topic].registrants == [bob])
        watched[topic].registrants.removeAll { $0 == bob }
        #expect(watched[topic].isEmpty)
    }

    @Test func topicsAreWatchedAsLongAsAnythingIsAwaitedThere() {
        let relay = network.relay()
        let routes = AnswerRoutes<Int>(relay)
        let registrant = newKey()
        let (shared, watched) = (ContentTopic(TopicTag(rawValue: 1)), ClientNetwork.contactCodeTopic(registrant))
        let questions = (0..<2).map { routes.add($0, on: shared) }
        routes.watch([registrant])
        #expect(relay.watchedTopics == [shared, watched])
        let other = routes.add(2, on: watched)
        routes.end(questions[0])
        routes.end(other)
        #expect(relay.watchedTopics == [shared, watched])
        routes.end(questions[1])
        #expect(relay.watchedTopics == [watched])
        routes.unwatch(registrant)
        #expect(relay.watchedTopics.isEmpty)
        _ = routes.add(3, on: watched)
        routes.watch([registrant])
        routes.unwatch(registrant)
        #expect(relay.watchedTopics == [watched])
        routes.keep(shared)
        routes.end(routes.add(4, on: shared))
        #expect(relay.watchedTopics == [shared, watched])
    }
}
