import Core
import Waku

/// Decides which request to send to the node next, and when messages may have been lost. Outcomes and time come in; the driver sends the
/// requests.
///
///     subscribing ──(subscribed)──▶ polling ──(polled)──▶ polling
///       ▲  ▲  │                       │  │
///       │  │  └──(failure)──┐   (failure) (subscription lost: 404)
///       │  │                ▼       │     │
///       │  └─(backoff passed)─ backing off ◀┘ from the second in a row on
///       └─────────────────────────────────────┘ the first
///
/// The node caches few messages between two polls and evicts the oldest by the *sender's* clock. So after a poll that returned a full cache, a
/// failure, or a long time without a poll, messages since the previous poll may be lost. The next successful poll reports since when, as the
/// local time of a poll, never a sender's timestamp.
///
/// Topics are polled one after the other and share the node's cache. Messages that arrive in between are counted in the next poll of some
/// topics: with several topics a full cache shows in the sum of two polls, and the lost messages may have arrived since the poll before both.
struct NwakuAttachment {
    struct Configuration: Hashable, Sendable {
        var pubsubTopics: [PubsubTopic] = [.statusDefault]
        var pollInterval: Duration = .milliseconds(300)
        /// The node's cache capacity for pollers, in messages.
        var cacheCapacity = 50
        var backoff = ExponentialBackoff()

        /// After a longer time without a poll, messages may be lost.
        var maximumPollGap: Duration { max(.seconds(2), pollInterval * 3) }
    }

    enum Action: Hashable {
        case subscribe
        case poll
        case wait(until: Instant)
    }

    private enum Phase {
        case subscribing
        case polling(next: Instant)
        case backingOff(until: Instant)
    }

    private let configuration: Configuration
    private var phase = Phase.subscribing
    private var failures = 0
    private var mayHaveLost = false
    /// Until the first successful poll: up to when each topic was seen in the previous run.
    private var previousRun: [PubsubTopic: Moment]
    /// Whether there was a successful poll in this run.
    private(set) var hasPolled = false
    /// When the last successful poll was sent; at first the time of initialization. All messages that reached the node before were delivered,
    /// except for the reported gaps.
    private var lastPoll: Moment
    private var pollBefore: Moment
    /// When the last poll of ``resumed(by:)`` was sent.
    private var resumption: Moment?
    private var lastCount = 0

    private(set) var state = RelayState.detached("not yet subscribed at the node")

    /// - Parameter lastSeen: Up to when each topic was seen in the previous run. Topics without an entry have nothing to catch up with.
    init(configuration: Configuration, lastSeen: [PubsubTopic: Timestamp], at now: Moment) {
        self.configuration = configuration
        lastPoll = now
        pollBefore = now
        previousRun = [:]
        for topic in configuration.pubsubTopics {
            guard let seen = lastSeen[topic] else { continue }
            previousRun[topic] = now - (seen <= now.wallClock ? now.wallClock.since(seen) : StoreCatchUp.clockLookBack)
        }
    }

    /// The time up to which all messages of a topic were received, except for the reported gaps.
    func polledUntil(_ topic: PubsubTopic) -> Moment {
        previousRun[topic] ?? (isShared ? pollBefore : lastPoll)
    }

    /// Whether several topics share the node's cache.
    private var isShared: Bool { configuration.pubsubTopics.count > 1 }

    func next(at now: Moment) -> Action {
        switch phase {
        case .subscribing: .subscribe
        case .polling(let next): now.instant >= next ? .poll : .wait(until: next)
        case .backingOff(let until): now.instant >= until ? .subscribe : .wait(until: until)
        }
    }

    /// The node accepted the subscription. The state becomes attached only after a successful poll.
    mutating func subscribed(at now: Moment) {
        phase = .polling(next: now.instant)
    }

    /// The first poll after a pause is being answered. Call this before its messages are delivered, so that those lost before can be read first.
    ///
    /// - Parameter sent: When the first of its requests was sent.
    /// - Returns: The topics on which messages may have been lost, and since when; nothing for other polls, and the second time.
    mutating func resumed(by sent: Moment) -> [PubsubTopic: Moment] {
        guard state != .attached, resumption != sent else { return [:] }
        resumption = sent
        return takeGaps(before: sent)
    }

    private mutating func takeGaps(before sent: Moment) -> [PubsubTopic: Moment] {
        var gaps = previousRun
        if mayHaveLost || sent.instant - lastPoll.instant > configuration.maximumPollGap {
            for topic in configuration.pubsubTopics { gaps[topic] = polledUntil(topic) }
        }
        previousRun = [:]
        mayHaveLost = false
        return gaps
    }

    /// All topics were polled and their messages were delivered.
    ///
    /// - Parameters:
    ///   - messageCount: The number of messages of all topics together, since they share the node's cache.
    ///   - sent: When the first of the requests was sent.
    /// - Returns: The topics on which messages may have been lost, and since when.
    mutating func polled(messageCount: Int, sent: Moment) -> [PubsubTopic: Moment] {
        let isFull = messageCount + (isShared ? lastCount : 0) >= configuration.cacheCapacity
        var gaps = resumption == sent ? [:] : takeGaps(before: sent)
        if isFull {
            for topic in configuration.pubsubTopics { gaps[topic] = gaps[topic] ?? polledUntil(topic) }
        }
        hasPolled = true
        failures = 0
        pollBefore = lastPoll
        lastPoll = sent
        lastCount = messageCount
        state = .attached
        // Poll again at once when the cache fills faster than the interval drains it.
        let isBusy = messageCount * 2 >= configuration.cacheCapacity
        phase = .polling(next: isBusy ? sent.instant : sent.instant + configuration.pollInterval)
        return gaps
    }

    /// A run was cancelled, perhaps with messages of a poll that were not delivered.
    mutating func noteCancellation() {
        mayHaveLost = true
    }

    /// The node does not know the subscription, as after a restart.
    mutating func subscriptionLost(at now: Moment, jitter: Double) {
        failed("the node lost its subscriptions", at: now, jitter: jitter)
        // Back off from a node that loses subscriptions repeatedly.
        if failures == 1 { phase = .subscribing }
    }

    mutating func failed(_ reason: String, at now: Moment, jitter: Double) {
        failures += 1
        mayHaveLost = true
        state = .detached(reason)
        phase = .backingOff(until: now.instant + configuration.backoff.delay(afterFailures: failures, jitter: jitter))
    }
}
