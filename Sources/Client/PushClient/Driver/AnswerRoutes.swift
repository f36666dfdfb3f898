import Synchronization
import Waku
import WakuCrypto

/// The topics that a client subscribes to: each for as long as messages with some use are expected on it.
final class AnswerRoutes<Question: Sendable>: Sendable {
    private let relay: any Relay
    /// The relay is called while this is locked, so that it sees changes in their order.
    private let topics = Mutex(AnswerTopics<Question>())

    init(_ relay: any Relay) {
        self.relay = relay
    }

    subscript(topic: ContentTopic) -> AnswerTopics<Question>.Uses {
        topics.withLock { $0[topic] }
    }

    /// Subscribes to the topic of a question's answers, until ``end(_:)``.
    ///
    /// - Parameter isBounded: Whether later questions may displace this one.
    @discardableResult
    func add(_ question: Question, on topic: ContentTopic, isBounded: Bool = true) -> Int {
        topics.withLock { topics in
            relay.watch([topic])
            let (id, dropped) = topics.add(question, on: topic, at: isBounded ? .now : nil)
            release(dropped, topics)
            return id
        }
    }

    func end(_ question: Int) {
        topics.withLock { topics in
            if let topic = topics.remove(question) { release([topic], topics) }
        }
    }

    /// Subscribes to the topic of answers to registrations, for good.
    func keep(_ topic: ContentTopic) {
        topics.withLock { topics in
            topics[topic].isKept = true
            relay.watch([topic])
        }
    }

    func watch(_ registrants: [PublicKey]) {
        let watched = registrants.map(ClientNetwork.contactCodeTopic)
        topics.withLock { topics in
            for (topic, registrant) in zip(watched, registrants) { topics.add(registrant, on: topic) }
            relay.watch(watched)
        }
    }

    func unwatch(_ registrant: PublicKey) {
        let topic = ClientNetwork.contactCodeTopic(registrant)
        topics.withLock { topics in
            topics[topic].registrants.removeAll { $0 == registrant }
            release([topic], topics)
        }
    }

    private func release(_ released: [ContentTopic], _ topics: AnswerTopics<Question>) {
        let unused = released.filter { topics[$0].isEmpty }
        if !unused.isEmpty { relay.unwatch(unused) }
    }
}

/// The uses of each topic. Topics have four bytes, so that several can share one.
struct AnswerTopics<Question: Sendable>: Sendable {
    struct Uses: Sendable {
        /// The questions that a message may answer, the oldest first.
        var questions: [(id: Int, question: Question)] = []
        /// The registrants whose contact code topic it is.
        var registrants: [PublicKey] = []
        var isKept = false

        var isEmpty: Bool { questions.isEmpty && registrants.isEmpty && !isKept }
    }

    /// Answers to older questions are no longer read. Filter nodes accept 1,000 topics per client.
    static var limit: Int { 512 }
    /// The maximum age at which a message may still be notified.
    static var lifetime: Duration { .seconds(600) }

    private var uses: [ContentTopic: Uses] = [:]
    private var topics: [Int: ContentTopic] = [:]
    /// When each question was added that later ones may displace.
    private var added: [Int: ContinuousClock.Instant] = [:]
    private var nextID = 0

    var count: Int { topics.count }

    subscript(topic: ContentTopic) -> Uses {
        get { uses[topic] ?? Uses() }
        set { uses[topic] = newValue.isEmpty ? nil : newValue }
    }

    /// - Parameter now: nil for a question that is not displaced.
    /// - Returns: The question's id, and the topics of questions that were dropped to make room for it.
    mutating func add(
        _ question: Question, on topic: ContentTopic, at now: ContinuousClock.Instant?
    ) -> (id: Int, dropped: [ContentTopic]) {
        let id = nextID
        nextID += 1
        topics[id] = topic
        self[topic].questions.append((id, question))
        guard let now else { return (id, []) }
        added[id] = now
        var dropped: [ContentTopic] = []
        while let (oldest, time) = added.min(by: { $0.key < $1.key }), added.count > Self.limit || now - time >= Self.lifetime {
            if let topic = remove(oldest) { dropped.append(topic) }
        }
        return (id, dropped)
    }

    /// - Returns: The question's topic; nil when the question was already removed.
    mutating func remove(_ id: Int) -> ContentTopic? {
        guard let topic = topics.removeValue(forKey: id) else { return nil }
        added[id] = nil
        self[topic].questions.removeAll { $0.id == id }
        return topic
    }

    mutating func add(_ registrant: PublicKey, on topic: ContentTopic) {
        if !self[topic].registrants.contains(registrant) { self[topic].registrants.append(registrant) }
    }
}
