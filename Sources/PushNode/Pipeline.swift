import Foundation
import Logging
import PushServer
import PushStore
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// The way of a message: topic look-up, open on all cores, rules and commit, answer.
final class Pipeline: Sendable {
    /// Queries that wait for the key of their topic: more are shed, since their askers won't wait.
    private static let waitingQueryLimit = 5_000
    /// Of these on one topic.
    private static let waitingQueryLimitOfTopic = 1_000
    /// Messages that are opened in one go: in between, others have their turn.
    private static let openingChunk = 32

    private let topics: TopicTable
    private let topicKeys: TopicKeys
    private let seen: SeenMessages
    private let opener: Opener
    private let decider: Decider
    private let queries: QueryRules
    private let store: Store
    private let deliveries: Deliveries
    private let publisher: Publisher
    private let counters: Counters
    private let logger: Logger
    private let now: @Sendable () -> Timestamp

    private let waitingQueries = Mutex((total: 0, byTopic: [TopicTag: Int]()))

    init(
        topics: TopicTable, topicKeys: TopicKeys, seen: SeenMessages, opener: Opener, decider: Decider, queries: QueryRules, store: Store,
        deliveries: Deliveries,
        publisher: Publisher, counters: Counters, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.topics = topics
        self.topicKeys = topicKeys
        self.seen = seen
        self.opener = opener
        self.decider = decider
        self.queries = queries
        self.store = store
        self.deliveries = deliveries
        self.publisher = publisher
        self.counters = counters
        self.logger = logger
        self.now = now
    }

    /// Returns when all of a batch is committed; queries whose topic's key is not at hand, and answers, follow.
    func take(_ batch: [ReceivedMessage]) async {
        let (ready, later) = sort(batch)
        for (incoming, tag) in later { openLater(incoming, tag) }
        await handle(await open(ready))
    }

    // MARK: Topic look-up

    private func sort(_ batch: [ReceivedMessage]) -> (ready: [Incoming], later: [(Incoming, TopicTag)]) {
        var ready: [Incoming] = []
        var later: [(Incoming, TopicTag)] = []
        var foreign = 0
        for received in batch {
            guard let tag = received.message.contentTopic.tag, let match = topics.match(tag) else {
                foreign += 1
                continue
            }
            let hash = received.hash
            guard received.message.flaw == nil else {
                drop(hash, .droppedOversized)
                continue
            }
            guard seen.insert(hash) else {
                counters.add(.duplicate)
                continue
            }
            var incoming = Incoming(received: received, hash: hash, isOwnTopic: match.isOwn)
            if match.mayBeQuery {
                guard let keys = topicKeys.known(tag) else {
                    incoming.laterTag = tag
                    // Nothing but a query comes on a registrant's topic. On the node's own it may be anything.
                    if match.isOwn { ready.append(incoming) } else { later.append((incoming, tag)) }
                    continue
                }
                incoming.topicKeys = keys
            }
            ready.append(incoming)
        }
        counters.add(.foreign, foreign)
        return (ready, later)
    }

    /// Derives the topic's key beside the pipeline, and goes on from there.
    private func openLater(_ incoming: Incoming, _ tag: TopicTag) {
        let hasRoom = waitingQueries.withLock { waiting in
            guard waiting.total < Self.waitingQueryLimit, waiting.byTopic[tag, default: 0] < Self.waitingQueryLimitOfTopic else {
                return false
            }
            waiting.total += 1
            waiting.byTopic[tag, default: 0] += 1
            return true
        }
        guard hasRoom else {
            drop(incoming.hash, .shedQuery)
            return
        }
        Task {
            let keys = try? await topicKeys.keys(tag)
            waitingQueries.withLock { waiting in
                waiting.total -= 1
                let others = waiting.byTopic[tag, default: 1] - 1
                waiting.byTopic[tag] = others > 0 ? others : nil
            }
            guard let keys else {
                drop(incoming.hash, .failedStore)
                return
            }
            var incoming = incoming
            incoming.laterTag = nil
            incoming.topicKeys = keys
            await handle(await open([incoming]))
        }
    }

    // MARK: Opening

    /// In order; what can't be opened is counted and left out.
    private func open(_ incoming: [Incoming]) async -> [Work] {
        var starts = stride(from: 0, to: incoming.count, by: Self.openingChunk).makeIterator()
        return await withTaskGroup(of: (Int, [Work]).self) { group in
            func addNext() {
                guard let start = starts.next() else { return }
                let chunk = incoming[start..<min(start + Self.openingChunk, incoming.count)]
                group.addTask { (start, chunk.compactMap(self.open)) }
            }
            for _ in 0..<ProcessInfo.processInfo.activeProcessorCount { addNext() }
            var chunks: [(Int, [Work])] = []
            for await chunk in group {
                chunks.append(chunk)
                addNext()
            }
            return chunks.sorted { $0.0 < $1.0 }.flatMap(\.1)
        }
    }

    private func open(_ incoming: Incoming) -> Work? {
        do throws(Drop) {
            return try opener.open(incoming, at: now())
        } catch {
            if let tag = incoming.laterTag, error.counter == .droppedUndecryptable {
                openLater(incoming, tag)
            } else {
                drop(incoming.hash, error.counter)
            }
            return nil
        }
    }

    private func drop(_ hash: MessageHash, _ counter: Counter) {
        counters.add(counter)
        logger.debug("message dropped", metadata: ["message": "\(hash)", "reason": "\(counter.rawValue)"])
    }

    // MARK: Rules and commit

    private func handle(_ works: [Work]) async {
        let changes = works.filter { !$0.isQuery }
        let time = now()
        let results = await store.commitEach(changes) { [decider] transaction, work in
            switch work.task {
            case .registration(let claim):
                try decider.decide(claim, work, transaction, at: time)
            case .request(let request, let envelope, let expires):
                try decider.decide(request, envelope, work, expires: expires, transaction, at: time)
            case .query:
                preconditionFailure("queries change nothing")
            }
        }
        for (work, result) in zip(changes, results) {
            switch result {
            case .success(let outcome): finish(outcome)
            case .failure(let error): fail(work, error)
            }
        }
        for work in works {
            if case .query(let query, let envelope) = work.task { answer(query, envelope, work.pubsubTopic) }
        }
    }

    private func finish(_ outcome: Decider.Outcome) {
        switch outcome {
        case .registration(let decision, let answer):
            switch decision {
            case .store(let key, _, _):
                counters.add(.registrationStored)
                let queryTopics = QueryTopics(of: key.keyHash)
                topicKeys.forget(queryTopics)
                topics.insert(queryTopics)
            case .unregister(let key, _):
                counters.add(.registrationEnded)
                topicKeys.forget(QueryTopics(of: key.keyHash))
            case .keep: break
            case .refuse: counters.add(.registrationRefused)
            }
            publisher.publish(answer)
        case .request(let pending, let queued):
            counters.add(.notificationQueued, queued.count)
            deliveries.add(queued, for: pending)
        }
    }

    /// Nothing was kept: so it says.
    private func fail(_ work: Work, _ error: StoreError) {
        counters.add(.failedStore)
        logger.error("not stored", metadata: ["reason": "\(error.message)"])
        switch work.task {
        case .registration(let claim):
            publisher.publish(decider.answer(claim, .refuse(.internalError), work))
        case .request(let request, let envelope, _):
            deliveries.add([], for: decider.failure(request, envelope, work))
        case .query: break
        }
    }

    private func answer(_ query: PushNotificationQuery, _ envelope: MetadataEnvelope, _ pubsubTopic: PubsubTopic) {
        do {
            let registrations = try store.read { transaction in
                var found: [StoredRegistration] = []
                var budget = QueryBudget()
                for registrant in queries.registrants(in: query) where !budget.isSpent {
                    try transaction.forEachRegistration(of: registrant) { stored in
                        let isAdmitted = budget.admits(stored)
                        if isAdmitted { found.append(stored) }
                        return isAdmitted
                    }
                }
                return found
            }
            guard let response = queries.answer(registrations, messageID: envelope.id) else {
                counters.add(.queryUnanswered)
                return
            }
            counters.add(.queryAnswered)
            publisher.publish(
                Answer(kind: .queryResponse, payload: response.encoded(), recipient: envelope.sender, pubsubTopic: pubsubTopic))
        } catch {
            counters.add(.failedStore)
            logger.error("query not answered", metadata: ["reason": "\(error)"])
        }
    }

    /// Nothing waits for a topic's key.
    var isIdle: Bool { waitingQueries.withLock { $0.total == 0 } }
}
