import Foundation
import Logging
import NodeMetrics
import PushServer
import PushStore
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// The way of a message: topic look-up, open on all cores, rules and commit, answer. Each stage works while the others do.
///
/// What was taken holds room until it is committed. When room is short, queries are shed first, since their askers won't wait; then requests;
/// registrations never are: whoever brings messages waits, which is how the relay learns to slow down.
///
/// Messages are committed in the order in which they came.
final class Pipeline: Sendable {
    /// For queries that wait for the key of their topic: more are shed. In units of 4 KiB, one for each at least.
    static let waitingQueryLimit = 16_384
    /// Of these on one topic. A flood of junk that is larger, before the key is there, takes good queries with it.
    private static let waitingQueryLimitOfTopic = 8_192
    /// Messages that are opened in one go: in between, others have their turn.
    private static let openingChunk = 16
    /// Asked for once: on Linux that reads files.
    private static let cores = ProcessInfo.processInfo.activeProcessorCount

    private let topics: TopicTable
    private let topicKeys: TopicKeys
    /// nil: keys are derived when a query needs them.
    private let precomputation: TopicKeyPrecomputation?
    private let seen: SeenMessages
    private let handled: HandledMessages
    private let opener: Opener
    private let versions: RecentVersions
    private let decider: Decider
    private let gate: Gate
    private let queries: QueryRules
    private let store: Store
    private let deliveries: Deliveries
    private let publisher: Publisher
    private let counters: Counters
    private let logger: Logger
    private let now: @Sendable () -> Timestamp

    private let room: AsyncSlots
    /// What others must leave free for registrations, and for these and requests.
    private let kept: (fromRequests: Int, fromQueries: Int)
    private let waitingQueries = Mutex((total: 0, byTopic: [TopicTag: Int]()))

    init(
        topics: TopicTable, topicKeys: TopicKeys, precomputation: TopicKeyPrecomputation?, seen: SeenMessages,
        handled: HandledMessages, opener: Opener,
        versions: RecentVersions, decider: Decider,
        gate: Gate,
        queries: QueryRules, store: Store,
        deliveries: Deliveries,
        publisher: Publisher, counters: Counters, logger: Logger, limit: Int, now: @escaping @Sendable () -> Timestamp
    ) {
        self.topics = topics
        self.topicKeys = topicKeys
        self.precomputation = precomputation
        self.seen = seen
        self.handled = handled
        self.opener = opener
        self.versions = versions
        self.decider = decider
        self.gate = gate
        self.queries = queries
        self.store = store
        self.deliveries = deliveries
        self.publisher = publisher
        self.counters = counters
        self.logger = logger
        self.now = now
        room = AsyncSlots(limit)
        kept = (limit / 4, limit / 2)
    }

    /// Returns when all of a batch has its place in the order of commits: what is committed from then on is durable after it. Queries whose
    /// topic's key is not at hand follow later.
    func take(_ batch: [ReceivedMessage]) async {
        counters.received(batch.count)
        let (ready, later) = sort(batch, Arrival(clock: now()))
        for (incoming, tag) in later { openLater(incoming, tag) }
        await open(ready)
    }

    // MARK: Topic look-up

    private func sort(_ batch: [ReceivedMessage], _ arrival: Arrival) -> (ready: [Incoming], later: [(Incoming, TopicTag)]) {
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
            var incoming = Incoming(
                received: received, hash: hash, isOwnTopic: match.isOwn, times: arrival.times(of: received.message))
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
        counters.add(.ours, batch.count - foreign)
        return (ready, later)
    }

    /// Derives the topic's key beside the pipeline, and goes on from there.
    private func openLater(_ incoming: Incoming, _ tag: TopicTag) {
        let hasRoom = waitingQueries.withLock { waiting in
            guard waiting.total < Self.waitingQueryLimit, waiting.byTopic[tag, default: 0] < Self.waitingQueryLimitOfTopic else {
                return false
            }
            waiting.total += incoming.cost
            waiting.byTopic[tag, default: 0] += incoming.cost
            return true
        }
        guard hasRoom else {
            drop(incoming.hash, .shedWaitingQuery)
            return
        }
        Task {
            let keys = try? await topicKeys.keys(tag)
            if let keys {
                var incoming = incoming
                incoming.laterTag = nil
                incoming.topicKeys = keys
                await submit(open([incoming]))
            } else {
                drop(incoming.hash, .failedTopicKey)
            }
            waitingQueries.withLock { waiting in
                waiting.total -= incoming.cost
                let others = waiting.byTopic[tag, default: 0] - incoming.cost
                waiting.byTopic[tag] = others > 0 ? others : nil
            }
        }
    }

    // MARK: Opening

    /// On all cores; goes on in the order of `incoming`.
    private func open(_ incoming: [Incoming]) async {
        let cores = Self.cores
        let size = min(Self.openingChunk, (incoming.count + cores - 1) / cores)
        guard size < incoming.count else { return await submit(open(incoming[...])) }
        var starts = stride(from: 0, to: incoming.count, by: size).makeIterator()
        await withTaskGroup(of: (Int, [Work]).self) { group in
            func addNext() {
                guard let start = starts.next() else { return }
                let chunk = incoming[start..<min(start + size, incoming.count)]
                group.addTask { (start, self.open(chunk)) }
            }
            // One more than cores, so that none waits while works are handed on.
            for _ in 0...cores { addNext() }
            var opened: [Int: [Work]] = [:]
            var next = 0
            for await (start, works) in group {
                opened[start] = works
                while let works = opened.removeValue(forKey: next) {
                    await submit(works)
                    next += size
                }
                addNext()
            }
        }
    }

    /// What can't be opened is counted and left out.
    private func open(_ chunk: ArraySlice<Incoming>) -> [Work] {
        let time = now()
        var othersOpened = 0
        let works: [Work] = chunk.compactMap { incoming in
            do throws(Drop) {
                return try opener.open(incoming, at: time)
            } catch {
                if let tag = incoming.laterTag, error.counter == .droppedUndecryptable {
                    openLater(incoming, tag)
                } else {
                    drop(incoming.hash, error.counter)
                    if error.counter.isAfterOpening { othersOpened += 1 }
                }
                return nil
            }
        }
        counters.opened(works, others: othersOpened)
        return works
    }

    private func drop(_ hash: MessageHash, _ counter: Counter) {
        counters.add(counter)
        if !counter.mayBeHandledLater { handled.note(hash) }
        logger.debug("message dropped", metadata: ["message": "\(hash)", "reason": "\(counter.name)"])
    }

    // MARK: Rules and commit

    /// Gives works their place in the order of commits, and answers them after it.
    private func submit(_ works: [Work]) async {
        var changes: [Work] = []
        var questions: [Work] = []
        for work in works {
            switch work.task {
            case .query:
                guard room.takeNow(work.cost, leaving: kept.fromQueries) else { drop(work.hash, .shedQuery); continue }
                questions.append(work)
            case .request:
                guard room.takeNow(work.cost, leaving: kept.fromRequests) else { drop(work.hash, .shedRequest); continue }
                changes.append(work)
            case .registration:
                await room.take(work.cost)
                changes.append(work)
            }
        }
        if !changes.isEmpty { commit(changes) }
        // They see what was committed before they came, and what they ask for is not older than what others were told.
        if !questions.isEmpty {
            store.afterCommits { [questions] in
                self.store.onReader { self.answer(questions) }
            }
        }
    }

    private func commit(_ works: [Work]) {
        let time = now()
        store.submit(
            works,
            { [decider] transaction, work in
                switch work.task {
                case .registration(let claim):
                    try decider.decide(claim, work, transaction, at: time)
                case .request(let request, let envelope, let expires):
                    try decider.decide(request, envelope, work, expires: expires, transaction, at: time)
                case .query:
                    preconditionFailure("queries change nothing")
                }
            },
            completion: { results in
                // In the order of commits: a device's notifications go out in it.
                self.deliveries.enqueue(results.flatMap(\.queued))
                Task {
                    for (work, result) in zip(works, results) {
                        switch result {
                        case .success(let outcome): self.finish(work, outcome)
                        case .failure(let error): self.fail(work, error)
                        }
                        self.room.give(work.cost)
                    }
                }
            })
    }

    private func finish(_ work: Work, _ outcome: Decider.Outcome) {
        counters.reached(.durable, work.kind, work.times)
        switch outcome {
        case .registration(let answer, let counter, let topicChange):
            counters.add(counter)
            if counter == .registrationStored || counter == .registrationOutdated, case .registration(let claim) = work.task,
                let key = claim.key
            {
                versions.note(claim.version, of: key)
            }
            switch topicChange {
            case .added(let registrant):
                let queryTopics = QueryTopics(of: registrant)
                topicKeys.forget(queryTopics)
                topics.insert(queryTopics)
            case .perhapsRemoved(let registrant): topicKeys.forget(QueryTopics(of: registrant))
            case nil: break
            }
            publisher.publish(answer)
            if case .added(let registrant) = topicChange { precomputation?.add(registrant) }
        case .request(let pending, let queued):
            counters.add(.requestTaken)
            counters.add(.notificationQueued, queued.count)
            deliveries.add(pending)
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
            deliveries.add(decider.failure(request, envelope, work))
        case .query: break
        }
    }

    // MARK: Queries

    private func answer(_ works: [Work]) {
        do {
            try store.read { transaction in
                for work in works { answer(work, transaction) }
            }
        } catch {
            fail(works.count, error)
        }
        for work in works { room.give(work.cost) }
    }

    /// One that can't be answered takes no other with it.
    private func answer(_ work: Work, _ transaction: StoreTransaction) {
        do {
            let answer = try response(to: work, transaction)
            counters.add(answer == nil ? .queryUnanswered : .queryAnswered)
            if let answer { publisher.publish(answer) } else { handled.note(work.hash) }
        } catch {
            fail(1, error)
        }
    }

    private func fail(_ count: Int, _ error: any Error) {
        counters.add(.failedStore, count)
        logger.error("query not answered", metadata: ["reason": "\(error)"])
    }

    /// nil when nothing is registered.
    private func response(to work: Work, _ transaction: StoreTransaction) throws -> Answer? {
        guard case .query(let query, let envelope) = work.task else { return nil }
        let time = now()
        let registrants = queries.registrants(in: query).filter { registrant in
            !gate.refuses { $0.query(about: registrant, at: time) }
        }
        var found: [StoredRegistration] = []
        var budget = QueryBudget()
        try transaction.forEachRegistration(of: registrants) { stored in
            let isAdmitted = budget.admits(stored)
            if isAdmitted { found.append(stored) }
            return isAdmitted
        }
        guard let response = queries.answer(withinLimits(found, at: time), messageID: envelope.id) else { return nil }
        let payload = response.encoded()
        if gate.refuses({ $0.answer(byteCount: payload.count, at: time) }) { return nil }
        return Answer(
            kind: .queryResponse, payload: payload, recipient: envelope.sender, pubsubTopic: work.pubsubTopic, times: work.times,
            question: work.hash)
    }

    /// Without the registrants about whom too much was told lately: all of their rows or none.
    private func withinLimits(_ found: [StoredRegistration], at time: Timestamp) -> [StoredRegistration] {
        var byteCounts: [KeyHash: Int] = [:]
        for stored in found { byteCounts[stored.key.keyHash, default: 0] += QueryBudget.byteCount(of: stored) }
        let refused = byteCounts.filter { registrant, count in gate.refuses { $0.answer(byteCount: count, about: registrant, at: time) } }
        return refused.isEmpty ? found : found.filter { refused[$0.key.keyHash] == nil }
    }

    /// What was taken and is not yet stored, in units of 4 KiB.
    var workInHand: Int { room.takenCount }
    var workLimit: Int { room.capacity }
    /// In the same units.
    var waitingQueryCount: Int { waitingQueries.withLock { $0.total } }

    /// Nothing is on its way.
    var isIdle: Bool { room.areAllFree && waitingQueries.withLock { $0.total == 0 } }
}

extension Counter {
    /// A message that ends with this may come to something when it comes again after a restart.
    fileprivate var mayBeHandledLater: Bool {
        switch self {
        case .segment, .shedWaitingQuery, .shedQuery, .shedRequest, .failedTopicKey, .failedStore: true
        default: false
        }
    }
}

extension Result<Decider.Outcome, StoreError> {
    fileprivate var queued: [QueuedDelivery] {
        if case .success(.request(_, let queued)) = self { queued } else { [] }
    }
}
