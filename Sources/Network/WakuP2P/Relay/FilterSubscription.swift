import Core
import Waku

/// The intervals of requests to filter nodes. Tests shorten them.
struct FilterTiming: Hashable, Sendable {
    /// Without a pushed message for this long, the node is pinged to check whether it still knows the subscription.
    var pingPeriod = Duration.seconds(5)
    /// How often the wanted topics are checked.
    var checkPeriod = Duration.seconds(1)
    /// The average time between requests: nwaku accepts 30 a minute from a peer, pings included, in bursts of up to 30.
    var pace = Duration.milliseconds(2500)
    /// How far requests that add topics may be ahead of the pace: a client's first question follows the look-up before it at once.
    var burst = Duration.milliseconds(7500)
    /// How long to wait after a request that was refused for now (429, 503) before more topics are sent.
    var rest = Duration.seconds(15)
    /// How long unwanted topics are kept, so that several can be unsubscribed together.
    var linger = Duration.seconds(30)
    /// How much earlier than the pace allows a forgotten subscription may be renewed.
    var allowance = Duration.seconds(5)
}

/// This client's subscription at one filter node, over one connection: decides on the next request, and records the time up to which the subscription
/// is known to have worked. Responses and time come in, requests go out.
///
///     unsubscribed ──(subscribe: 200)──▶ accepted ──(push, or ping: 200)──▶ accepted, proven up to then
///          ▲                                │
///          └───────────(ping: 404)──────────┘ messages after the last proof may be lost
///
/// - A pushed message proves the subscription at its arrival; a ping or subscribe request, when it was sent. 429 proves nothing.
/// - A node without room for further topics (503) keeps the accepted ones: the end of the connection would end these, too.
/// - Unwanted topics are unsubscribed many at a time, or when there is no room for others. One topic always stays: a node
///   that has none of a client's topics has no subscription that could be proven.
/// - A node that has forgotten its client accepts a further subscribe request as if it were the first, and then answers pings with success.
///   So the node is pinged right before topics are added, and each request includes this node's own topics: even if the node forgot the
///   subscription in between, registrations and requests keep arriving.
struct FilterSubscription {
    enum Request: Hashable {
        /// Adds these content topics, on each pubsub topic.
        case subscribe([ContentTopic])
        /// Gives these content topics up, on each pubsub topic.
        case unsubscribe([ContentTopic])
        case ping
    }

    enum Action: Hashable {
        /// Send this request. The same is returned until it is answered.
        case ask(Request)
        case wait(until: Instant)
    }

    /// The number of unwanted topics that justifies a request.
    private static let dropCount = 50
    /// How long after a successful ping topics may be added.
    private static let pingValidity = Duration.seconds(1)

    /// Included in every subscribe request.
    private let ownTopics: [ContentTopic]
    private let pubsubTopicCount: Int
    private let topicLimit: Int
    private let timing: FilterTiming

    /// Topics sent to the node, whether or not it answered yet: pushes may arrive before its response.
    private(set) var topics: Set<ContentTopic> = []
    /// The subscribe requests to be sent one after the other.
    private var plan: ArraySlice<[ContentTopic]> = []
    /// The topics of the unsubscribe request that is being sent.
    private var leaving: [ContentTopic] = []
    /// The time at which topics were last added or removed.
    private var lastChange: Instant
    /// The last proof; nil unless the node accepted a subscription.
    private(set) var proven: Moment?
    private var lastPing: Instant
    private var lastGoodPing: Instant?
    /// The time up to which the requests so far use up the pace (a token bucket in units of time).
    private var paceUsedUntil: Instant
    /// The end of the rest after a request that was refused for now.
    private var restsUntil: Instant

    init(ownTopics: [ContentTopic], pubsubTopicCount: Int, topicLimit: Int, timing: FilterTiming, at now: Instant) {
        self.ownTopics = ownTopics
        self.pubsubTopicCount = pubsubTopicCount
        self.topicLimit = topicLimit
        self.timing = timing
        lastPing = now
        lastChange = now
        paceUsedUntil = now
        restsUntil = now
    }

    /// Whether the node accepted all of these: messages on them are pushed.
    func hasAccepted(_ wanted: [ContentTopic]) -> Bool {
        proven != nil
            && wanted.allSatisfy { topic in
                topics.contains(topic) && !leaving.contains(topic) && !plan.contains { $0.contains(topic) && !ownTopics.contains(topic) }
            }
    }

    // MARK: Requests

    /// - Parameters:
    ///   - wanted: All topics that are wanted now, the most important first.
    ///   - dropped: Topics that were wanted before. Other topics are kept although they are not wanted at present, since the order of a node's
    ///     registrants changes often.
    mutating func next(wanted: [ContentTopic], dropped: Set<ContentTopic> = [], at now: Instant) -> Action {
        if let part = plan.first { return .ask(.subscribe(part)) }
        if !leaving.isEmpty { return .ask(.unsubscribe(leaving)) }
        // Each request has the own topics, also those that are not among the wanted ones, as when there are too many.
        let own = wanted.isEmpty ? [] : ownTopics.filter { !topics.contains($0) }
        let missing = own + wanted.filter { !topics.contains($0) && !own.contains($0) }
        let room = max(0, topicLimit - topics.count)
        let new = Array(missing.prefix(room))
        guard let proven else {
            if new.isEmpty || paceUsedUntil > now { return .wait(until: now + timing.checkPeriod) }
            return begin(new, at: now)
        }
        let stale = stale(wanted, dropped, at: now, isRoomNeeded: missing.count > room)
        if !stale.isEmpty, paceUsedUntil <= now {
            leaving = stale
            lastChange = now
            paceUsedUntil = max(paceUsedUntil, now) + timing.pace * pubsubTopicCount
            return .ask(.unsubscribe(stale))
        }
        if !new.isEmpty, let lastGoodPing, now - lastGoodPing < Self.pingValidity, mayAdd(after: timing.pace, at: now) {
            return begin(new, at: now)
        }
        let pingDue = max(proven.instant, lastPing) + timing.pingPeriod
        if pingDue <= now || (!new.isEmpty && mayAdd(after: .zero, at: now)) { return .ask(.ping) }
        return .wait(until: min(now + timing.checkPeriod, pingDue))
    }

    /// Whether a request that adds topics may be sent now, after a request that used this much of the pace.
    private func mayAdd(after ping: Duration, at now: Instant) -> Bool {
        max(paceUsedUntil - ping - timing.burst, restsUntil) <= now
    }

    /// The topics to unsubscribe now: at most as many as fit into a request.
    private func stale(_ wanted: [ContentTopic], _ dropped: Set<ContentTopic>, at now: Instant, isRoomNeeded: Bool) -> [ContentTopic] {
        guard !dropped.isEmpty else { return [] }
        let needed = Set(wanted).union(ownTopics)
        let stale = dropped.filter { topics.contains($0) && !needed.contains($0) }
        guard isRoomNeeded || stale.count >= Self.dropCount || now - lastChange >= timing.linger else { return [] }
        let sorted = stale.sorted { $0.rawValue < $1.rawValue }
        return Array(sorted.dropLast(stale.count == topics.count ? 1 : 0).prefix(FilterSubscribeRequest.maximumContentTopicCount))
    }

    private mutating func begin(_ new: [ContentTopic], at now: Instant) -> Action {
        let others = new.filter { !ownTopics.contains($0) }
        let size = FilterSubscribeRequest.maximumContentTopicCount - ownTopics.count
        let parts = others.chunks(of: size).map { ownTopics + $0 }
        plan = (parts.isEmpty ? [ownTopics] : parts)[...]
        topics.formUnion(ownTopics)
        topics.formUnion(others)
        paceUsedUntil = max(paceUsedUntil, now) + timing.pace * (plan.count * pubsubTopicCount)
        lastGoodPing = nil
        lastChange = now
        return .ask(.subscribe(plan[plan.startIndex]))
    }

    // MARK: Responses

    /// The node accepted the pending subscribe request.
    ///
    /// - Returns: The time since which messages on the own topics may be lost nevertheless: the node may have forgotten this client between the
    ///   last proof and this request. nil for the first subscription.
    mutating func subscribed(sent: Moment) -> Moment? {
        plan = plan.dropFirst()
        guard let proven else {
            self.proven = sent
            return nil
        }
        return proven
    }

    /// The node gave up the topics of the unsubscribe request. It would have answered 404 without a subscription.
    mutating func unsubscribed(sent: Moment) {
        topics.subtract(leaving)
        leaving = []
        prove(sent)
    }

    mutating func pinged(sent: Moment, at now: Instant) {
        notePing(sent: sent.instant)
        lastGoodPing = now
        prove(sent)
    }

    /// The node pushed a message. It proves the subscription if its topic was sent to the node.
    mutating func pushed(on topic: ContentTopic, at moment: Moment) {
        if topics.contains(topic) { prove(moment) }
    }

    private mutating func prove(_ moment: Moment) {
        if let proven, moment.instant > proven.instant { self.proven = moment }
    }

    private mutating func notePing(sent: Instant) {
        lastPing = sent
        paceUsedUntil = max(paceUsedUntil, sent) + timing.pace
    }

    /// The node refused the request because of its rate limit (429), or has no room for further topics or clients (503).
    mutating func refusedForNow(_ request: Request, sent: Instant, at now: Instant) {
        if request == .ping { lastPing = sent }
        // The remaining topics are sent later. The own topics stay if the node accepted them before.
        for part in plan { topics.subtract(part) }
        if proven != nil { topics.formUnion(ownTopics) }
        plan = []
        leaving = []
        restsUntil = now + timing.rest
        paceUsedUntil = restsUntil
    }

    /// The node does not know the subscription (404): all topics are to be sent again.
    mutating func forgotten(at now: Instant) {
        topics = []
        plan = []
        leaving = []
        proven = nil
        lastPing = now
        lastGoodPing = nil
        paceUsedUntil = max(now, max(paceUsedUntil, now) + timing.pace - timing.allowance)
    }
}
