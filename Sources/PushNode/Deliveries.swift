import Gorush
import Logging
import NodeMetrics
import PushStore
import StatusProtocol
import Synchronization
import Waku

/// Carries out what ``DeliveryQueue`` decides: takes notifications from the outbox to gorush, and completes the requests that wait for them.
final class Deliveries: Sendable {
    struct State {
        /// One for each endpoint: none knows of another.
        var queues: [DeliveryQueue]
        /// Why the last post to each failed.
        var failures: [String]
        /// Whether each was slow when that was last looked at.
        var isSlow: [Bool]
        /// What is in the queues, by both of its names.
        var deliveries: [Int64: Queued] = [:]
        var ids: [DeliveryID: Int] = [:]
        /// Of the requests that brought them in this life.
        var times: [Int64: MessageTimes] = [:]
        /// What was just put into the outbox and is likely to be posted next: it need not be read again, as long as it still holds.
        var entries: [Int64: OutboxEntry] = [:]
        var requests = PendingRequestTable()
    }

    struct Queued {
        let delivery: DeliveryID
        /// By the place of its endpoint.
        let endpoint: Int
    }

    let store: Store
    let gorush: [GorushEndpoint]
    let routing: GorushRouting
    let feedback: Feedback
    let counters: Counters
    let logger: Logger
    /// For what is stored.
    let now: @Sendable () -> Timestamp
    let state: Mutex<State>
    private let publisher: Publisher
    private let answerDeadline: Duration
    /// For the queue, whose time must not go back: where the clock was at the start, and how long that is ago.
    private let started: (clock: Timestamp, uptime: ContinuousClock.Instant)
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    init(
        store: Store, gorush: [GorushEndpoint], publisher: Publisher, feedback: Feedback, counters: Counters, logger: Logger,
        answerDeadline: Duration, queue: DeliveryQueue.Configuration, now: @escaping @Sendable () -> Timestamp
    ) {
        self.store = store
        self.gorush = gorush
        routing = GorushRouting(gorush.map(\.rule))
        self.publisher = publisher
        self.feedback = feedback
        self.counters = counters
        self.logger = logger
        self.answerDeadline = answerDeadline
        self.now = now
        started = (now(), .now)
        state = Mutex(
            State(
                queues: gorush.map { endpoint in
                    var queue = queue
                    queue.maximumBatchesInFlight = endpoint.connections
                    queue.maximumBatchCount = endpoint.batch
                    // Posts that time out one after the other are failures in a row.
                    queue.breaker.failureMemory = max(queue.breaker.failureMemory, endpoint.timeout * 2)
                    return DeliveryQueue(configuration: queue)
                }, failures: gorush.map { _ in "" }, isSlow: gorush.map { _ in false }))
        (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var steadyNow: Timestamp {
        started.clock + (.now - started.uptime)
    }

    // MARK: What comes in

    /// Takes up what an earlier run left in the outbox.
    func load() throws(StoreError) {
        let waiting = try store.read { try $0.waitingDeliveries() }
        enqueue(waiting, isAwaited: false)
    }

    /// Beyond, entries are read from the outbox.
    private static let entryLimit = 1_024

    /// Notifications that requests have put into the outbox and wait for, in the order of their commits.
    func enqueue(_ queued: [QueuedDelivery]) {
        enqueue(queued.lazy.map { ($0.waiting, $0.entry, $0.times, self.endpoint(of: $0.entry)) }, isAwaited: true)
    }

    /// Notifications that are in the outbox now, in the order of their commits. Reads them if there are several endpoints: to be called on one of
    /// the store's threads, or before the node runs.
    ///
    /// - Parameter isAwaited: requests wait for them.
    private func enqueue(_ waiting: [WaitingDelivery], isAwaited: Bool = true) {
        let endpoints = endpoints(of: waiting)
        enqueue(waiting.lazy.map { ($0, nil, nil, endpoints[$0.id] ?? 0) }, isAwaited: isAwaited)
    }

    /// As it does, from anywhere.
    func enqueueFromOutbox(_ waiting: [WaitingDelivery]) async {
        await withCheckedContinuation { continuation in
            store.onReader {
                self.enqueue(waiting)
                continuation.resume()
            }
        }
    }

    /// One whose app has no endpoint any more is given up when it is to be posted: until then it is the first one's.
    private func endpoint(of entry: OutboxEntry) -> Int {
        routing.endpoint(for: entry.platform, apnTopic: entry.apnTopic) ?? 0
    }

    private static let routingChunk = 500

    /// Of what is in the outbox. Nothing is read when there is nothing to choose.
    private func endpoints(of waiting: [WaitingDelivery]) -> [Int64: Int] {
        guard routing.hasChoice else { return [:] }
        var found: [Int64: Int] = [:]
        for start in stride(from: 0, to: waiting.count, by: Self.routingChunk) {
            let ids = waiting[start..<min(start + Self.routingChunk, waiting.count)].map(\.id)
            for case (let id, .entry(let entry)) in (try? store.read { try $0.outboxEntries(ids) }) ?? [:] {
                found[id] = endpoint(of: entry)
            }
        }
        return found
    }

    private func enqueue(_ items: some Collection<(WaitingDelivery, OutboxEntry?, MessageTimes?, endpoint: Int)>, isAwaited: Bool) {
        guard !items.isEmpty else { return }
        let (now, clock) = (steadyNow, now())
        state.withLock { state in
            for (item, entry, times, endpoint) in items where state.ids[item.delivery] == nil {
                state.ids[item.delivery] = endpoint
                state.deliveries[item.id] = Queued(delivery: item.delivery, endpoint: endpoint)
                state.times[item.id] = times
                if state.entries.count < Self.entryLimit { state.entries[item.id] = entry }
                // The system's clock may have been set since the start; the queue's runs on.
                state.queues[endpoint].add(
                    item.id, device: item.registration, expires: now + item.expires.since(clock), isAwaited: isAwaited, now: now)
            }
        }
        wake.yield()
    }

    /// A request that wants to know what becomes of its notifications, which were enqueued before. Of those that a gorush is known not to take
    /// it is told at once.
    func add(_ request: PendingRequest) {
        guard request.finalCodes == nil, request.isWaiting else {
            finish([PendingRequestTable.Finished(failing: request)], isNew: false)
            return
        }
        let now = steadyNow
        let (refused, unknown) = state.withLock { state -> (PendingRequest?, [DeliveryID]) in
            var (open, unknown) = (request, [DeliveryID]())
            for (index, entry) in request.entries.enumerated() {
                guard let delivery = entry.delivery else { continue }
                guard let endpoint = state.ids[delivery] else {
                    unknown.append(delivery)
                    continue
                }
                if state.queues[endpoint].breaker.isOpen(at: now) { open.entries[index].result = .known(.internalError) }
            }
            guard open.isWaiting else { return (open, []) }
            state.requests.add(open, deadline: now + answerDeadline)
            return (nil, unknown)
        }
        if let refused {
            counters.add(.requestWhileOpen)
            finish([PendingRequestTable.Finished(failing: refused)])
            return
        }
        wake.yield()
        for delivery in Set(unknown) { store.onReader { self.lookUp(delivery) } }
    }

    /// A delivery that is not in the queue: it may have ended meanwhile, or have been left by another process.
    private func lookUp(_ delivery: DeliveryID) {
        let found = try? store.read { (waiting: try $0.waiting(delivery), isAccepted: try $0.wasAccepted(delivery)) }
        if let waiting = found?.waiting {
            enqueue([waiting])
        } else {
            let error: PushNotificationReport.ErrorType? = found?.isAccepted == true ? nil : .internalError
            finish(state.withLock { $0.requests.resolve(delivery, as: error) })
        }
    }

    /// There may be something to do.
    func wakeUp() {
        wake.yield()
    }

    // MARK: Running

    /// Runs until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.feedback.run() }
            var timer: Task<Void, Never>?
            var timerEnd: Timestamp?
            for await _ in wakes {
                let now = steadyNow
                let (actions, late, next) = state.withLock { state in
                    var actions: [(endpoint: Int, action: DeliveryQueue.Action)] = []
                    var next: Timestamp?
                    let late = state.requests.end(before: now)
                    for index in state.queues.indices {
                        actions += state.queues[index].actions(now: now).map { (index, $0) }
                        next = [next, state.queues[index].nextWake(now: now)].compactMap(\.self).min()
                    }
                    return (actions, late, [next, state.requests.nextDeadline].compactMap(\.self).min())
                }
                finish(late)
                noteSlowness(at: now)
                for (endpoint, action) in actions { carryOut(action, at: endpoint, in: &group) }
                // One timer, and a new one only when there is something to do before it.
                if let end = timerEnd, end <= now { timerEnd = nil }
                if let next, timerEnd.map({ next < $0 }) ?? true {
                    timer?.cancel()
                    let pause = max(next.since(now), .milliseconds(1))
                    timerEnd = now + pause
                    timer = Task {
                        try? await Task.sleep(for: pause)
                        if !Task.isCancelled { wake.yield() }
                    }
                }
            }
            timer?.cancel()
        }
    }

    private func carryOut(_ action: DeliveryQueue.Action, at endpoint: Int, in group: inout DiscardingTaskGroup) {
        switch action {
        case .post(let batch):
            group.addTask {
                await self.post(batch, to: endpoint)
                self.wake.yield()
            }
        case .expire(let ids):
            group.addTask { await self.drop(ids, .notificationExpired) }
        case .evict(let ids):
            group.addTask { await self.drop(ids, .notificationEvicted) }
        }
    }

    /// Given up: out of the outbox, and whoever waits is told.
    func drop(_ ids: [Int64], _ counter: Counter) async {
        counters.add(counter, ids.count)
        await keep("given up notifications not removed") { transaction in
            for id in ids { try transaction.drop(id) }
        }
        finish(state.withLock { state in ids.flatMap { state.end($0, as: .internalError) } })
    }

    /// Commits, however long that takes: nobody is told before. Given up only when the node stops.
    @discardableResult
    func keep<T: Sendable>(_ complaint: Logger.Message, _ work: @escaping @Sendable (StoreTransaction) throws -> T) async -> T? {
        var isNews = true
        while true {
            do throws(StoreError) {
                return try await store.commit(work)
            } catch {
                if isNews { logger.error(complaint, metadata: ["reason": "\(error.message)"]) }
                isNews = false
                guard (try? await Task.sleep(for: .seconds(1))) != nil else { return nil }
            }
        }
    }

    // MARK: Requests

    /// - Parameter isNew: what they were answered is to be remembered.
    func finish(_ all: [PendingRequestTable.Finished], isNew: Bool = true) {
        guard !all.isEmpty else { return }
        counters.add(.requestAnswered, all.count)
        for error in all.flatMap(\.errors) { counters.reported(ReportLabel(error)) }
        let final = isNew ? all.compactMap { finished in AnswerCode.final(finished.errors).map { (finished.request.envelopeID, $0) } } : []
        if !final.isEmpty {
            let time = now()
            // Not waited for: it has its place in the queue of commits, before the same requests can be looked at again.
            store.enqueue { transaction in
                for (id, codes) in final { try transaction.remember(answer: codes, to: id, at: time) }
            }
        }
        for finished in all { publisher.publish(finished.answer) }
    }

    /// What is in the outbox stays there from now on.
    func postNoMore() {
        state.withLock { state in
            for index in state.queues.indices { state.queues[index].drain() }
        }
    }

    /// After ``postNoMore()``: whether something is still on its way to gorush.
    var isPosting: Bool { state.withLock { !$0.queues.allSatisfy(\.isDrained) } }

    /// Notifications whose post has no answer: nobody knows whether gorush takes them.
    var unansweredCount: Int { state.withLock { $0.queues.reduce(0) { $0 + $1.deliveriesInFlight.count(where: { _ in true }) } } }

    /// Requests whose answers wait for deliveries.
    var hasRequests: Bool { state.withLock { !$0.requests.isEmpty } }

    var requestCount: Int { state.withLock { $0.requests.count } }
    /// How each endpoint is, and what waits for it.
    var endpoints: [EndpointState] {
        let now = steadyNow
        return state.withLock { state in
            state.queues.indices.map { index in
                EndpointState(
                    name: routing.rules[index].name, breaker: state.queues[index].breaker,
                    isOpen: state.queues[index].breaker.isOpen(at: now), slowness: state.queues[index].slowness(at: now),
                    unanswered: state.queues[index].unanswered(at: now), batchLimit: state.queues[index].batchLimit(at: now),
                    waitingCount: state.queues[index].count, failure: state.failures[index])
            }
        }
    }

    /// Of the endpoint that is worst off.
    var breaker: CircuitBreaker { endpoints.map(\.breaker).max { $0.severity < $1.severity } ?? CircuitBreaker() }

    var waitingCount: Int { state.withLock { $0.deliveries.count } }
}

/// How a gorush server is, as far as posts tell.
struct EndpointState: Sendable {
    let name: String
    let breaker: CircuitBreaker
    let isOpen: Bool
    /// nil while it answers in time.
    let slowness: DeliveryQueue.Slowness?
    /// Posts without an answer, and how long the oldest of them.
    let unanswered: (count: Int, age: Duration)
    /// Notifications that the next post may have.
    let batchLimit: Int
    let waitingCount: Int
    /// Why the last post failed.
    let failure: String

    /// What stands in the way of deliveries; nil when nothing does. A gorush that failed and has got nothing to prove itself by since is
    /// given the benefit of the doubt.
    var obstacle: String? {
        if !breaker.isClosed, waitingCount > 0 || isOpen { return "takes no notifications, \(waitingCount) wait: \(failure)" }
        return slowness.flatMap { $0.isStalled ? delay : nil }
    }

    /// That it is slow; nil when it is not, or nothing waits for it.
    var delay: String? {
        guard let slowness, waitingCount > 0 else { return nil }
        return "is slow: \(slowness), \(waitingCount) notifications wait"
    }
}

extension CircuitBreaker {
    fileprivate var severity: Int {
        switch state {
        case .closed: 0
        case .halfOpen: 1
        case .open: 2
        }
    }
}

extension Deliveries.State {
    /// It left the queue, or leaves it now. Returns the requests that are complete by that.
    mutating func end(_ id: Int64, as error: PushNotificationReport.ErrorType?) -> [PendingRequestTable.Finished] {
        forget(id).map { requests.resolve($0, as: error) } ?? []
    }

    /// It is not in the queue any more; who waits for it goes on waiting.
    @discardableResult
    mutating func forget(_ id: Int64) -> DeliveryID? {
        entries[id] = nil
        times[id] = nil
        guard let queued = deliveries.removeValue(forKey: id) else { return nil }
        queues[queued.endpoint].remove(id)
        ids[queued.delivery] = nil
        return queued.delivery
    }
}
