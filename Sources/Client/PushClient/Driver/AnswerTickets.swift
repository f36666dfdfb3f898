import Waku

/// Pending questions, each with its own answer topic. Bounded: the oldest are dropped.
struct AnswerTickets<Question: Sendable>: Sendable {
    struct Ticket: Sendable {
        let topic: ContentTopic
        let question: Question
        fileprivate let added: ContinuousClock.Instant
    }

    /// Answers to older questions are no longer read. Filter nodes accept 1,000 topics per client.
    static var limit: Int { 512 }
    /// The maximum age at which a message may still be notified.
    static var lifetime: Duration { .seconds(600) }

    private var tickets: [Int: Ticket] = [:]
    private var ids: [ContentTopic: Set<Int>] = [:]
    /// Ticket ids in the order of insertion, including removed ones, which are skipped.
    private var order: ArraySlice<Int> = []
    private var nextID = 0

    var count: Int { tickets.count }

    func tickets(on topic: ContentTopic) -> [(id: Int, question: Question)] {
        (ids[topic] ?? []).sorted().compactMap { id in tickets[id].map { (id, $0.question) } }
    }

    /// - Returns: The topics of the tickets that were dropped to make room for this one.
    mutating func add(_ question: Question, on topic: ContentTopic, at now: ContinuousClock.Instant) -> [ContentTopic] {
        let id = nextID
        nextID += 1
        tickets[id] = Ticket(topic: topic, question: question, added: now)
        ids[topic, default: []].insert(id)
        order.append(id)
        var dropped: [ContentTopic] = []
        while let oldest = order.first {
            if let ticket = tickets[oldest] {
                guard tickets.count > Self.limit || now - ticket.added >= Self.lifetime else { break }
                if let topic = remove(oldest) { dropped.append(topic) }
            }
            order = order.dropFirst()
        }
        // Removed ids would otherwise accumulate behind a ticket that is never answered.
        if order.count > 4 * Self.limit { order = ArraySlice(order.filter { tickets[$0] != nil }) }
        return dropped
    }

    /// - Returns: The ticket's topic; nil when the ticket was already removed.
    mutating func remove(_ id: Int) -> ContentTopic? {
        guard let ticket = tickets.removeValue(forKey: id) else { return nil }
        ids[ticket.topic]?.remove(id)
        if ids[ticket.topic]?.isEmpty == true { ids[ticket.topic] = nil }
        return ticket.topic
    }
}
