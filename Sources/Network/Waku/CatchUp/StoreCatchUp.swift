package import Core

/// Decides which queries to send to one or several stores after messages may have been lost on a pubsub topic. Gaps, pages and time come in,
/// queries go out.
///
/// Stores may have different messages, so a `StoreWalker` walks each of them, all at the same time; a store is named by its place, from 0. Messages
/// that one store returned are left out of the pages of the others. A store that fails does not keep the others from closing a gap.
package struct StoreCatchUp {
    package struct Configuration: Sendable {
        package var pubsubTopic = PubsubTopic.statusDefault
        /// The content topics to query; without any, and without ``learned``, gaps are ignored.
        package var contentTopics: [ContentTopic]
        /// Further content topics, read when a walk begins.
        package var learned: (any LearnedContentTopics)?
        /// The number of stores, at least 1.
        package var storeCount = 1
        /// The assumed maximum difference of clocks: windows start earlier by this.
        package var overlap = Duration.seconds(60)
        /// A gap is closed by a walk that starts this long after it was noted: the time a store takes to store a message.
        package var settling = Duration.seconds(1)
        /// The minimum time between the starts of two walks.
        package var shortestPeriod = Duration.seconds(5)
        /// How long live messages wait for a walk: see ``StoreCatchUp/isBehind(at:)``. Clients wait 3 s for an answer.
        package var liveWaitLimit = Duration.milliseconds(1500)
        /// The number of messages after which a query ends, unless they are of a longer time than ``overlap``: then its next part begins.
        package var messageLimit = 100_000
        /// The maximum number of full parts of a query.
        package var fullPartLimit = 100
        /// The maximum number of pages of a part, which ends queries to a store that returns empty ones forever.
        package var pageLimit = 10_000
        package var rememberedHashCount = 20_000
        package var backoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(60))

        package init(
            contentTopics: [ContentTopic], learned: (any LearnedContentTopics)? = nil, storeCount: Int = 1,
            settling: Duration = .seconds(1), liveWaitLimit: Duration = .milliseconds(1500), shortestPeriod: Duration = .seconds(5),
            messageLimit: Int = 100_000, pageLimit: Int = 10_000,
            rememberedHashCount: Int = 20_000, backoff: ExponentialBackoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(60))
        ) {
            self.contentTopics = contentTopics
            self.learned = learned
            self.storeCount = storeCount
            self.settling = settling
            self.liveWaitLimit = liveWaitLimit
            self.shortestPeriod = shortestPeriod
            self.messageLimit = messageLimit
            self.pageLimit = pageLimit
            self.rememberedHashCount = rememberedHashCount
            self.backoff = backoff
        }
    }

    package enum Action: Hashable {
        case query(StoreQuery)
        case wait(until: Instant)
        /// Wait until a gap is noted.
        case idle
    }

    /// Why a walk did not read everything that a store has.
    package enum CutShort: String, CustomStringConvertible {
        case messageLimit = "there are too many messages to read them all"
        case pageLimit = "the store returns page after page without an end"
        /// It would repeat it forever.
        case repeatedCursor = "the store repeats a page"

        package var description: String { rawValue }
    }

    /// The result of a walk.
    package struct Summary: Hashable {
        /// Messages that were received neither live nor by an earlier walk.
        package var messageCount = 0
        package var pageCount = 0
        /// Why a query ended before the store did; nil when none did.
        package var cutShort: CutShort?
    }

    /// How far back to look when the stored time of the previous run is unusable because it is in the future.
    package static let clockLookBack = Duration.seconds(3600)
    /// This many failures in a row are reported as an alarm: a store that is found or answers within seconds is none.
    private static let reportedFailures = 3
    /// The maximum number of learned topics that queries name. With more, one query reads all messages of the pubsub topic, which is fewer
    /// pages than a query for every ``StoreQuery/maximumTopicCount`` topics.
    package static let learnedTopicLimit = 100

    private let configuration: Configuration
    private let contentTopics: Set<ContentTopic>
    private var stores: [StoreWalker]
    private var recent: GenerationalCache<MessageHash, Void>
    /// The earliest start of the walks that were cut short and that no other walk has made up for; the latest reason.
    private var unread: (from: Moment, reason: CutShort)?

    package init(configuration: Configuration) {
        self.configuration = configuration
        contentTopics = Set(configuration.contentTopics)
        stores = Array(repeating: StoreWalker(configuration: configuration), count: configuration.storeCount)
        recent = GenerationalCache(capacity: configuration.rememberedHashCount)
    }

    package var pubsubTopic: PubsubTopic { configuration.pubsubTopic }

    /// The wall clock time since which messages may still be missing; nil when none are. Stores that fail are waited for only while all do.
    package func missingFrom(at now: Moment) -> Timestamp? {
        let working = stores.filter { $0.failures == 0 }
        guard working.isEmpty else { return working.compactMap { $0.missingFrom(at: now) }.min() }
        // A store with a later gap looked up what was missing before.
        return stores.compactMap { $0.missingFrom(at: now) }.max()
    }

    /// Whether live messages should wait, because earlier ones are being read from a store: a request is otherwise decided before the registration that it
    /// is about. Ends with a walk, or after ``Configuration/liveWaitLimit``. Stores that fail are waited for only while all do.
    package func isBehind(at now: Instant) -> Bool {
        let working = stores.filter { $0.failures == 0 }
        return (working.isEmpty ? stores : working).contains { $0.isBehind(at: now) }
    }

    /// Records that messages since `start` may be lost.
    ///
    /// - Parameter goesFirst: Whether live messages wait for the walk: after a pause. Not for a gap among live messages, such as a poll of a full cache: on a
    ///   busy shard these come all the time.
    /// - Returns: false when there are no content topics to query.
    @discardableResult
    package mutating func noteGap(from start: Moment, goesFirst: Bool = false, at now: Moment) -> Bool {
        guard !contentTopics.isEmpty || configuration.learned != nil else { return false }
        for store in stores.indices { stores[store].noteGap(from: start, goesFirst: goesFirst, at: now) }
        return true
    }

    /// Checks whether the wall clock was set back. Call it regularly.
    /// - Returns: Whether a gap was noted.
    @discardableResult
    package mutating func noteClock(at now: Moment) -> Bool {
        stores.indices.reduce(false) { isGap, store in stores[store].noteClock(at: now) || isGap }
    }

    /// The node reconnected: ends pauses, and resets the numbers of consecutive failures.
    package mutating func noteReconnection() {
        for store in stores.indices { stores[store].noteReconnection() }
    }

    /// Records messages that were received live, so that ``fresh(_:)`` leaves them out.
    package mutating func noteReceived(_ messages: [ReceivedMessage]) {
        for message in messages where isNeeded(message) {
            _ = recent.insert(message.hash)
        }
    }

    /// A run was cancelled, perhaps before the messages that it received were delivered: ``fresh(_:)`` returns all of them again.
    package mutating func noteCancellation() {
        recent = GenerationalCache(capacity: configuration.rememberedHashCount)
    }

    private func isNeeded(_ message: ReceivedMessage) -> Bool {
        let topic = message.message.contentTopic
        return contentTopics.contains(topic) || configuration.learned?.contains(topic) ?? false
    }

    /// The next action for a store. Returns the same query until ``answered(_:store:)`` or ``failed(isTooMuch:store:at:jitter:)`` is called.
    package mutating func next(at now: Moment, store: Int = 0) -> Action {
        stores[store].next(at: now)
    }

    /// The messages of a page that were received neither live nor from a store before.
    package mutating func fresh(_ messages: [ReceivedMessage], store: Int = 0) -> [ReceivedMessage] {
        let isForAllTopics = stores[store].isForAllTopics
        let fresh = messages.filter { (!isForAllTopics || isNeeded($0)) && recent.insert($0.hash) }
        stores[store].noteFresh(fresh.count)
        return fresh
    }

    /// A page was received and its messages were delivered.
    /// - Returns: The walk's result if this was its last page; nil otherwise.
    package mutating func answered(_ page: StorePage, store: Int = 0) -> Summary? {
        guard let start = stores[store].walkStart, let summary = stores[store].answered(page) else { return nil }
        if let reason = summary.cutShort {
            if !stores.contains(where: \.isRead) { unread = (unread.map { .earliest($0.from, start) } ?? start, reason) }
        } else if let unread, start.instant <= unread.from.instant {
            self.unread = nil
        }
        return summary
    }

    /// The event to report after a walk: whether a store was read to its end, or why none was. nil while more is to be looked up.
    package mutating func event(at now: Moment) -> RelayEvent? {
        if let loss = loss(at: now) { return loss }
        return stores.contains(where: \.isRead) && missingFrom(at: now) == nil ? .caughtUp : nil
    }

    /// The event to report, once, when walks were cut short and no store is about to read the rest. Ask after failures, too: the others may have waited
    /// for the store that fails.
    package mutating func loss(at now: Moment) -> RelayEvent? {
        guard let unread, missingFrom(at: now) == nil else { return nil }
        self.unread = nil
        return .catchUpCutShort("\(unread.reason)")
    }

    /// The query failed; it is repeated after a backoff.
    ///
    /// - Parameters:
    ///   - isTooMuch: Whether the response was too large or too slow, so that a smaller page may succeed.
    ///   - jitter: A random number from 0 to 1.
    /// - Returns: what fails since this failure, to be logged; nil if it did before.
    package mutating func failed(isTooMuch: Bool = false, store: Int = 0, at now: Moment, jitter: Double) -> Extent? {
        stores[store].failed(isTooMuch: isTooMuch, at: now, jitter: jitter)
        guard stores[store].failures == 1 else { return nil }
        return haveAllFailed(1) ? .all : .one
    }

    /// How many of the stores fail.
    package enum Extent: Hashable, Sendable {
        case one, all
    }

    /// Whether to report the failures as an alarm: every store has failed some times in a row. Repeated, since the end of another pubsub topic's failures
    /// ends the alarm.
    package var isFailureToReport: Bool { haveAllFailed(Self.reportedFailures) }

    private func haveAllFailed(_ count: Int) -> Bool { stores.allSatisfy { $0.failures >= count } }

    /// There is no store at this place, nor is one expected: its gaps are dropped once another store has looked everything up.
    /// - Returns: Whether another one has.
    package mutating func dropGaps(ofMissing store: Int, at now: Moment) -> Bool {
        guard stores.contains(where: { $0.missingFrom(at: now) == nil }) else { return false }
        stores[store].dropGaps()
        return true
    }
}
