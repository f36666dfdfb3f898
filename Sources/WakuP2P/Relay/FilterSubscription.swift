import Primitives
import Waku

/// How often filter nodes are asked. Tests make it shorter.
struct FilterTiming: Hashable, Sendable {
    /// Without a pushed message for so long, the node is asked whether it still knows this client.
    var pingPeriod = Duration.seconds(5)
    /// From one look at which topics are wanted to the next.
    var lookPeriod = Duration.seconds(1)
    /// Between two requests on average: nwaku takes 30 a minute of a peer, pings among them, and as many at once.
    var pace = Duration.milliseconds(2500)
    /// After a node said that it is asked too often (429), until it is told of more topics.
    var rest = Duration.seconds(15)
    /// Of what is owed to the pace, so much is forgiven when the node has forgotten everything: telling it again can't wait.
    var allowance = Duration.seconds(5)
}

/// This client's subscription at one filter node, over one connection: decides what to ask the node next, and up to when the subscription
/// is known to have worked. Answers and time come in, requests go out.
///
///     untold ──(subscribe: 200)──▶ accepted ──(push, or ping: 200)──▶ accepted, proven up to then
///       ▲                             │
///       └────────(ping: 404)──────────┘ what came after the last proof may be lost
///
/// - A pushed message proves the subscription when it comes; a ping or a subscription, when it was sent. 429 proves nothing either way: the
///   last proof stays what it was.
/// - A node that has forgotten its client takes a further subscription as if it were the first, and then answers pings well. So it is pinged
///   right before it is told of more topics, and each request names the node's own topics again: whatever was forgotten in between,
///   registrations and requests keep coming.
struct FilterSubscription {
    enum Request: Hashable {
        /// To these content topics, on each pubsub topic.
        case subscribe([ContentTopic])
        case ping
    }

    enum Action: Hashable {
        /// The same until it is answered.
        case ask(Request)
        case wait(until: Instant)
    }

    /// After a good ping more topics may be told for so long.
    private static let pingValidity = Duration.seconds(1)

    /// Named in every subscription.
    private let ownTopics: [ContentTopic]
    private let pubsubTopicCount: Int
    private let topicLimit: Int
    private let timing: FilterTiming

    /// That the node was told, whether or not it has answered: what it sends for them may come before its answer.
    private(set) var topics: Set<ContentTopic> = []
    /// Subscriptions that are to be sent one after the other.
    private var plan: ArraySlice<[ContentTopic]> = []
    /// The last proof; nil unless the node took a subscription.
    private(set) var proven: Moment?
    private var lastPing: Instant
    private var lastGoodPing: Instant?
    /// Until when the requests so far are within the pace.
    private var paidUntil: Instant

    init(ownTopics: [ContentTopic], pubsubTopicCount: Int, topicLimit: Int, timing: FilterTiming, at now: Instant) {
        self.ownTopics = ownTopics
        self.pubsubTopicCount = pubsubTopicCount
        self.topicLimit = topicLimit
        self.timing = timing
        lastPing = now
        paidUntil = now
    }

    // MARK: Asking

    /// - Parameter wanted: All the topics that are wanted now, the most important first.
    mutating func next(wanted: [ContentTopic], at now: Instant) -> Action {
        if let part = plan.first { return .ask(.subscribe(part)) }
        let new = Array(wanted.filter { !topics.contains($0) }.prefix(max(0, topicLimit - topics.count)))
        guard let proven else {
            if new.isEmpty || paidUntil > now { return .wait(until: now + timing.lookPeriod) }
            return begin(new, at: now)
        }
        if !new.isEmpty, let lastGoodPing, now - lastGoodPing < Self.pingValidity, paidUntil - timing.pace <= now {
            return begin(new, at: now)
        }
        let pingDue = max(proven.instant, lastPing) + timing.pingPeriod
        if pingDue <= now || (!new.isEmpty && paidUntil <= now) { return .ask(.ping) }
        return .wait(until: min(now + timing.lookPeriod, pingDue))
    }

    private mutating func begin(_ new: [ContentTopic], at now: Instant) -> Action {
        let others = new.filter { !ownTopics.contains($0) }
        let size = FilterSubscribeRequest.maximumContentTopicCount - ownTopics.count
        let parts = stride(from: 0, to: others.count, by: size).map { ownTopics + others[$0..<min($0 + size, others.count)] }
        plan = (parts.isEmpty ? [ownTopics] : parts)[...]
        topics.formUnion(ownTopics)
        topics.formUnion(others)
        paidUntil = max(paidUntil, now) + timing.pace * (plan.count * pubsubTopicCount)
        lastGoodPing = nil
        return .ask(.subscribe(plan[plan.startIndex]))
    }

    // MARK: Answers

    /// The node took the subscription that was due.
    /// - Returns: Since when messages on the own topics may be lost all the same: the node may have forgotten this client between the last
    ///   proof and this request. nil for the first subscription.
    mutating func subscribed(sent: Moment) -> Moment? {
        plan = plan.dropFirst()
        guard let proven else {
            self.proven = sent
            return nil
        }
        return proven
    }

    mutating func pinged(sent: Moment, at now: Instant) {
        notePing(sent: sent.instant)
        lastGoodPing = now
        prove(sent)
    }

    /// The node sent a message on a topic that it was told.
    mutating func pushed(on topic: ContentTopic, at moment: Moment) {
        if topics.contains(topic) { prove(moment) }
    }

    private mutating func prove(_ moment: Moment) {
        if let proven, moment.instant > proven.instant { self.proven = moment }
    }

    private mutating func notePing(sent: Instant) {
        lastPing = sent
        paidUntil = max(paidUntil, sent) + timing.pace
    }

    /// The node would not be asked this now (429).
    mutating func askedTooOften(_ request: Request, sent: Instant, at now: Instant) {
        if request == .ping { lastPing = sent }
        // What it was not told it is told later. The own topics stay, if it took them once.
        for part in plan { topics.subtract(part) }
        if proven != nil { topics.formUnion(ownTopics) }
        plan = []
        paidUntil = now + timing.rest
    }

    /// The node answered a ping that it knows no subscription of this client (404): it is to be told everything again.
    mutating func forgotten(at now: Instant) {
        topics = []
        plan = []
        proven = nil
        lastPing = now
        lastGoodPing = nil
        paidUntil = max(now, max(paidUntil, now) + timing.pace - timing.allowance)
    }
}
