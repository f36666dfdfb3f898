import Gorush
import Logging
import PushServer
import PushStore
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// Carries out what ``DeliveryQueue`` decides: takes notifications from the outbox to gorush, and completes the requests that wait for them.
final class Deliveries: Sendable {
    private struct State {
        var queue: DeliveryQueue
        /// What is in the queue, by both of its names.
        var deliveries: [Int64: DeliveryID] = [:]
        var ids: Set<DeliveryID> = []
        var requests = PendingRequestTable()
        var postsInFlight = 0
        var postsNoMore = false
        /// Whether the last post failed: said when it changes.
        var isFailing = false
    }

    private let store: Store
    private let gorush: any NotificationPosting
    private let publisher: Publisher
    private let counters: Counters
    private let logger: Logger
    private let answerDeadline: Duration
    /// For what is stored.
    private let now: @Sendable () -> Timestamp
    /// For the queue, whose time must not go back: where the clock was at the start, and how long that is ago.
    private let started: (clock: Timestamp, uptime: ContinuousClock.Instant)
    private let state: Mutex<State>
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    init(
        store: Store, gorush: any NotificationPosting, publisher: Publisher, counters: Counters, logger: Logger, answerDeadline: Duration,
        queue: DeliveryQueue = DeliveryQueue(), now: @escaping @Sendable () -> Timestamp
    ) {
        self.store = store
        self.gorush = gorush
        self.publisher = publisher
        self.counters = counters
        self.logger = logger
        self.answerDeadline = answerDeadline
        self.now = now
        started = (now(), .now)
        state = Mutex(State(queue: queue))
        (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Takes up what an earlier run left in the outbox.
    func load() throws(StoreError) {
        let waiting = try store.read { try $0.waitingDeliveries() }
        enqueue(waiting)
    }

    /// Notifications that were accepted, and the request that wants to know what becomes of them.
    func add(_ queued: [WaitingDelivery], for request: PendingRequest) {
        enqueue(queued)
        guard request.finalCodes == nil, request.entries.contains(where: \.isWaiting) else {
            finish(PendingRequestTable.Finished(request: request, errors: request.entries.map(\.error)), isNew: false)
            return
        }
        let (id, unknown) = state.withLock { state in
            (state.requests.add(request), request.entries.compactMap(\.delivery).filter { !state.ids.contains($0) })
        }
        Task {
            try? await Task.sleep(for: answerDeadline)
            if let finished = state.withLock({ $0.requests.end(id) }) { finish(finished) }
        }
        for delivery in Set(unknown) { lookUp(delivery) }
    }

    /// A delivery that another request started: it may have ended meanwhile, or not yet have come here.
    private func lookUp(_ delivery: DeliveryID) {
        let found = try? store.read { (waiting: try $0.waiting(delivery), isAccepted: try $0.wasAccepted(delivery)) }
        if let waiting = found?.waiting {
            enqueue([waiting])
        } else {
            resolve(delivery, as: found?.isAccepted == true ? nil : .internalError)
        }
    }

    private func enqueue(_ waiting: [WaitingDelivery]) {
        guard !waiting.isEmpty else { return }
        let now = steadyNow
        state.withLock { state in
            for item in waiting where state.ids.insert(item.delivery).inserted {
                state.deliveries[item.id] = item.delivery
                state.queue.add(item.id, expires: item.expires, now: now)
            }
        }
        wake.yield()
    }

    private var steadyNow: Timestamp {
        started.clock + (.now - started.uptime)
    }

    // MARK: Posting

    /// Runs until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            var timer: Task<Void, Never>?
            for await _ in wakes {
                timer?.cancel()
                let now = steadyNow
                let (actions, next) = state.withLock { state -> ([DeliveryQueue.Action], Timestamp?) in
                    state.postsNoMore ? ([], nil) : (state.queue.actions(now: now), state.queue.nextWake(now: now))
                }
                for action in actions {
                    switch action {
                    case .post(let batch):
                        state.withLock { $0.postsInFlight += 1 }
                        group.addTask {
                            await self.post(batch)
                            self.state.withLock { $0.postsInFlight -= 1 }
                            self.wake.yield()
                        }
                    case .expire(let ids):
                        group.addTask { await self.drop(ids, .notificationExpired) }
                    }
                }
                timer = next.map { time in
                    Task {
                        try? await Task.sleep(for: max(time.since(now), .milliseconds(1)))
                        if !Task.isCancelled { wake.yield() }
                    }
                }
            }
            timer?.cancel()
        }
    }

    private func post(_ batch: DeliveryQueue.Batch) async {
        let entries: [OutboxEntry]
        do {
            entries = try store.read { transaction in try batch.deliveries.compactMap(transaction.outboxEntry) }
        } catch {
            logger.error("outbox not readable", metadata: ["reason": "\(error.message)"])
            finished(batch, .failed(retryAfter: nil))
            return
        }
        let present = Set(entries.map(\.id))
        forget(batch.deliveries.filter { !present.contains($0) })
        guard !entries.isEmpty else {
            finished(batch, .accepted)
            return
        }
        let result = await gorush.post(entries.map(\.notificationForGorush))
        await endDeadTokens(result.failures, entries)
        if result.ignoredTokenCount > 0 {
            counters.add(.notificationUncounted, result.ignoredTokenCount)
            logger.warning(
                "gorush did not count all notifications: is a platform disabled there?",
                metadata: ["missing": "\(result.ignoredTokenCount)"])
        }
        noteState(result, entries.count)
        if case .accepted = result.outcome { await accept(entries.map(\.id)) }
        finished(batch, result.outcome)
    }

    private func noteState(_ result: PostResult, _ count: Int) {
        let reason = result.reason ?? "unknown"
        switch result.outcome {
        case .accepted, .refused:
            let isNews = state.withLock { state in
                defer { state.isFailing = false }
                return state.isFailing
            }
            if isNews { logger.info("gorush takes notifications again") }
            if case .refused = result.outcome {
                logger.warning("gorush refused notifications", metadata: ["count": "\(count)", "reason": "\(reason)"])
            }
        case .failed:
            let isNews = state.withLock { state in
                defer { state.isFailing = true }
                return !state.isFailing
            }
            if isNews { logger.warning("gorush takes no notifications", metadata: ["reason": "\(reason)"]) }
        }
    }

    /// gorush has them: that is kept before anybody is told.
    private func accept(_ ids: [Int64]) async {
        let time = now()
        while true {
            do throws(StoreError) {
                try await store.commit { transaction in
                    for id in ids { try transaction.accepted(id, at: time) }
                }
                return
            } catch {
                logger.error("acceptance not stored", metadata: ["reason": "\(error.message)"])
                // Not before it is: otherwise they would be posted again after a restart.
                guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
            }
        }
    }

    private func finished(_ batch: DeliveryQueue.Batch, _ outcome: DeliveryQueue.Outcome) {
        let resolutions = state.withLock { $0.queue.finished(batch.id, outcome: outcome, now: steadyNow) }
        var dropped: [Int64] = []
        var ended: [DeliveryID] = []
        var retried = 0
        for resolution in resolutions {
            switch resolution {
            case .accepted(let id): if let delivery = end(id) { ended.append(delivery) }
            case .dropped(let id): dropped.append(id)
            case .retrying: retried += 1
            }
        }
        counters.add(.notificationAccepted, ended.count)
        counters.add(.notificationRetried, retried)
        for delivery in ended { resolve(delivery, as: nil) }
        if !dropped.isEmpty { Task { [dropped] in await drop(dropped, .notificationRefused) } }
    }

    /// Leaves the queue's names; what waits for it is still to be told.
    private func end(_ id: Int64) -> DeliveryID? {
        state.withLock { state in
            guard let delivery = state.deliveries.removeValue(forKey: id) else { return nil }
            state.ids.remove(delivery)
            return delivery
        }
    }

    /// Gone from the outbox: the device was unregistered meanwhile.
    private func forget(_ ids: [Int64]) {
        for id in ids {
            state.withLock { $0.queue.remove(id) }
            if let delivery = end(id) { resolve(delivery, as: .notRegistered) }
        }
    }

    private func drop(_ ids: [Int64], _ counter: Counter) async {
        counters.add(counter, ids.count)
        _ = try? await store.commit { transaction in
            for id in ids { try transaction.drop(id) }
        }
        for id in ids {
            if let delivery = end(id) { resolve(delivery, as: .internalError) }
        }
    }

    private func endDeadTokens(_ failures: [PostResult.Failure], _ entries: [OutboxEntry]) async {
        guard !failures.isEmpty else { return }
        let byID = Dictionary(entries.map { ($0.notificationID, $0) }, uniquingKeysWith: { first, _ in first })
        let dead = failures.filter { $0.verdict == .dead }.compactMap { byID[$0.notificationID] }
        counters.add(.tokenDoubtful, failures.count { $0.verdict == .doubtful })
        counters.add(.tokenDead, dead.count)
        guard !dead.isEmpty else { return }
        let time = now()
        let results = await store.commitEach(dead) { transaction, entry in
            guard case .registered(let stored)? = try transaction.state(of: entry.stored.key),
                VerdictRules.endsRegistration(storedVersion: stored.version, notifiedVersion: entry.stored.version)
            else { return }
            try transaction.unregister(entry.stored.key, version: stored.version, at: time)
        }
        for case .failure(let error) in results {
            logger.error("registration with a dead token not ended", metadata: ["reason": "\(error.message)"])
        }
    }

    // MARK: Requests

    private func resolve(_ delivery: DeliveryID, as error: PushNotificationReport.ErrorType?) {
        for finished in state.withLock({ $0.requests.resolve(delivery, as: error) }) { finish(finished) }
    }

    /// - Parameter isNew: what it was answered is to be remembered.
    private func finish(_ finished: PendingRequestTable.Finished, isNew: Bool = true) {
        counters.add(.requestAnswered)
        if isNew, let codes = AnswerCode.final(finished.errors) {
            let time = now()
            // Not waited for: it takes its place in the queue of commits before the same request can be looked at again.
            Task { try? await store.commit { try $0.remember(answer: codes, to: finished.request.envelopeID, at: time) } }
        }
        publisher.publish(finished.answer)
    }

    /// What is in the outbox stays there from now on.
    func postNoMore() {
        state.withLock { $0.postsNoMore = true }
    }

    var isPosting: Bool { state.withLock { $0.postsInFlight > 0 } }

    /// Requests whose answers wait for deliveries.
    var hasRequests: Bool { state.withLock { !$0.requests.isEmpty } }

    var waitingCount: Int { state.withLock { $0.deliveries.count } }
}

extension OutboxEntry {
    /// Unique among all that this gorush ever gets: derived from what is delivered to whom.
    fileprivate var notificationID: String { String(delivery.hex.prefix(32)) }

    fileprivate var notificationForGorush: Notification {
        Notification(
            id: notificationID, platform: stored.registration.platform ?? .apn, deviceToken: stored.registration.deviceToken,
            apnTopic: stored.registration.apnTopic, kind: notification.kind, chatID: notification.chatID, registrant: stored.key.keyHash,
            message: notification.message, installationID: stored.key.installationID)
    }
}

extension PendingRequest.Entry {
    fileprivate var isWaiting: Bool { delivery != nil }

    fileprivate var delivery: DeliveryID? {
        if case .waiting(let delivery) = result { delivery } else { nil }
    }

    fileprivate var error: PushNotificationReport.ErrorType? {
        if case .known(let error) = result { error } else { .internalError }
    }
}
