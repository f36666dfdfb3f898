import Primitives
import Waku

/// Decides what to ask the node next, and when messages may have been lost on the way. Outcomes and time come in; whoever holds it does the
/// talking.
///
///     subscribing ──(subscribed)──▶ polling ──(polled)──▶ polling
///       ▲  ▲  │                       │  │
///       │  │  └──(failed)──┐   (failed)  (forgotten: 404)
///       │  │               ▼       │     │
///       │  └─(time passed)─ backing off ◀┘ from the second in a row on
///       └──────────────────────────────────┘ the first
///
/// The node keeps few messages between two polls, and throws out the oldest by the *sender's* clock. So a poll that brought as many as it
/// keeps, a failure, or a long silence mean that something may be lost since the last poll before: the next good poll tells from when. That
/// is the local time of a poll, never a sender's.
///
/// Topics are polled one after the other, and share the node's cache. What comes in between counts at the next poll for some of them: with
/// several topics a cache that was full shows in two polls together, and what it lost may have come since the poll before both.
struct NwakuAttachment {
    struct Configuration: Hashable, Sendable {
        var pubsubTopics: [PubsubTopic] = [.statusDefault]
        var pollInterval: Duration = .milliseconds(300)
        /// How many messages the node keeps for its pollers.
        var cacheCapacity = 50
        var backoff = ExponentialBackoff()

        /// Longer without a poll means that messages may be lost.
        var longestSilence: Duration { max(.seconds(2), pollInterval * 3) }
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
    /// Of topics that were seen in an earlier life, until the first good poll: up to when.
    private var earlierLife: [PubsubTopic: Moment]
    /// When the last good poll was sent, or when this began. All that reached the node before was handed over, but for the gaps that were
    /// told.
    private var lastPoll: Moment
    private var pollBefore: Moment
    private var lastCount = 0

    private(set) var state = RelayState.detached("not yet subscribed at the node")

    /// - Parameter lastSeen: Until when all was seen, in an earlier life. On a topic that is not among them nothing can have been missed.
    init(configuration: Configuration, lastSeen: [PubsubTopic: Timestamp], at now: Moment) {
        self.configuration = configuration
        lastPoll = now
        pollBefore = now
        earlierLife = [:]
        for topic in configuration.pubsubTopics {
            guard let seen = lastSeen[topic] else { continue }
            earlierLife[topic] = now - (seen <= now.wallClock ? now.wallClock.since(seen) : StoreCatchUp.clockLookBack)
        }
    }

    /// Until when all was seen on a topic, but for the gaps that were told.
    func polledUntil(_ topic: PubsubTopic) -> Moment {
        earlierLife[topic] ?? (isShared ? pollBefore : lastPoll)
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

    /// The node took the subscription. Attached it is only when a poll worked.
    mutating func subscribed(at now: Moment) {
        phase = .polling(next: now.instant)
    }

    /// All topics were polled, and what they brought was handed over.
    /// - Parameters:
    ///   - messageCount: Of all topics together: they share the node's cache.
    ///   - sent: When the first of the requests went out.
    /// - Returns: The topics on which messages may be lost, and since when.
    mutating func polled(messageCount: Int, sent: Moment) -> [PubsubTopic: Moment] {
        let isLate = sent.instant - lastPoll.instant > configuration.longestSilence
        let isFull = messageCount + (isShared ? lastCount : 0) >= configuration.cacheCapacity
        var gaps = earlierLife
        if mayHaveLost || isLate || isFull {
            for topic in configuration.pubsubTopics { gaps[topic] = polledUntil(topic) }
        }
        earlierLife = [:]
        mayHaveLost = false
        failures = 0
        pollBefore = lastPoll
        lastPoll = sent
        lastCount = messageCount
        state = .attached
        // A half-full cache fills faster than the interval drains it.
        let isBusy = messageCount * 2 >= configuration.cacheCapacity
        phase = .polling(next: isBusy ? sent.instant : sent.instant + configuration.pollInterval)
        return gaps
    }

    /// The node does not know the subscription, as after a restart.
    mutating func forgotten(at now: Moment, jitter: Double) {
        detach("the node lost its subscriptions", at: now, jitter: jitter)
        // A node that forgets again and again is not asked again and again.
        if failures == 1 { phase = .subscribing }
    }

    mutating func failed(_ reason: String, at now: Moment, jitter: Double) {
        detach(reason, at: now, jitter: jitter)
    }

    private mutating func detach(_ reason: String, at now: Moment, jitter: Double) {
        failures += 1
        mayHaveLost = true
        state = .detached(reason)
        phase = .backingOff(until: now.instant + configuration.backoff.delay(afterFailures: failures, jitter: jitter))
    }
}
