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
        let (now, clock) = (steadyNow, now())
        state.withLock { state in
            for item in waiting where state.ids.insert(item.delivery).inserted {
                state.deliveries[item.id] = item.delivery
                // The system's clock may have been set since the start; the queue's runs on.
                state.queue.add(item.id, expires: now + item.expires.since(clock), now: now)
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
                let (actions, next) = state.withLock { ($0.queue.actions(now: now), $0.queue.nextWake(now: now)) }
                for action in actions {
                    switch action {
                    case .post(let batch):
                        group.addTask {
                            await self.post(batch)
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
        let loaded: LoadedBatch
        do throws(StoreError) {
            loaded = try store.read { transaction in try LoadedBatch(batch.deliveries, names(of: batch), transaction) }
        } catch {
            logger.error("outbox not readable", metadata: ["reason": "\(error.message)"])
            await finished(batch, .failed(retryAfter: nil))
            return
        }
        // Out of the queue before the batch is finished: its outcome says nothing of them.
        for id in loaded.accepted { end(id, as: nil) }
        for id in loaded.gone { end(id, as: .notRegistered) }
        if !loaded.unreadable.isEmpty {
            logger.error("notifications can't be read, and are given up", metadata: ["count": "\(loaded.unreadable.count)"])
            state.withLock { state in
                for id in loaded.unreadable { state.queue.remove(id) }
            }
            await drop(loaded.unreadable, .notificationUnreadable)
        }
        let entries = loaded.entries
        guard !entries.isEmpty else {
            await finished(batch, .notPosted)
            return
        }
        let result = await gorush.post(entries.map(\.notificationForGorush))
        noteState(result, entries.count)
        if case .accepted = result.outcome {
            let time = now()
            await keep("acceptance not stored") { transaction in
                for entry in entries { try transaction.accepted(entry.id, entry.delivery, at: time) }
            }
        }
        await endDeadTokens(result.failures, entries)
        await finished(batch, result.outcome)
    }

    private func names(of batch: DeliveryQueue.Batch) -> [Int64: DeliveryID] {
        state.withLock { state in
            Dictionary(uniqueKeysWithValues: batch.deliveries.compactMap { id in state.deliveries[id].map { (id, $0) } })
        }
    }

    private func noteState(_ result: PostResult, _ count: Int) {
        counters.add(.notificationUncounted, result.ignoredTokenCount)
        counters.add(.tokenFailureUnmatched, result.unmatchedFailureCount)
        if result.ignoredTokenCount > 0 {
            logger.warning(
                "gorush did not count all notifications: is a platform disabled there?",
                metadata: ["missing": "\(result.ignoredTokenCount)"])
        }
        let reason = result.reason ?? "unknown"
        let isFailing = if case .failed = result.outcome { true } else { false }
        let wasFailing = state.withLock { state in
            defer { state.isFailing = isFailing }
            return state.isFailing
        }
        if isFailing, !wasFailing { logger.warning("gorush takes no notifications", metadata: ["reason": "\(reason)"]) }
        if !isFailing, wasFailing { logger.info("gorush takes notifications again") }
        if case .refused = result.outcome {
            logger.warning("gorush refused notifications", metadata: ["count": "\(count)", "reason": "\(reason)"])
        }
    }

    /// Commits, however long that takes: nobody is told before. Given up only when the node stops.
    private func keep(_ complaint: Logger.Message, _ work: @escaping @Sendable (StoreTransaction) throws -> Void) async {
        var isNews = true
        while true {
            do throws(StoreError) {
                return try await store.commit(work)
            } catch {
                if isNews { logger.error(complaint, metadata: ["reason": "\(error.message)"]) }
                isNews = false
                guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
            }
        }
    }

    private func finished(_ batch: DeliveryQueue.Batch, _ outcome: DeliveryQueue.Outcome) async {
        let resolutions = state.withLock { $0.queue.finished(batch.id, outcome: outcome, now: steadyNow) }
        var refused: [Int64] = []
        for resolution in resolutions {
            switch resolution {
            case .accepted(let id):
                counters.add(.notificationAccepted)
                end(id, as: nil)
            case .dropped(let id): refused.append(id)
            case .retrying: counters.add(.notificationRetried)
            }
        }
        if !refused.isEmpty { await drop(refused, .notificationRefused) }
    }

    /// It left the outbox: whoever waits for it is told.
    private func end(_ id: Int64, as error: PushNotificationReport.ErrorType?) {
        let delivery = state.withLock { state -> DeliveryID? in
            state.queue.remove(id)
            guard let delivery = state.deliveries.removeValue(forKey: id) else { return nil }
            state.ids.remove(delivery)
            return delivery
        }
        if let delivery { resolve(delivery, as: error) }
    }

    private func drop(_ ids: [Int64], _ counter: Counter) async {
        counters.add(counter, ids.count)
        await keep("given up notifications not removed") { transaction in
            for id in ids { try transaction.drop(id) }
        }
        for id in ids { end(id, as: .internalError) }
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
            let stored = try transaction.version(of: entry.key)
            guard VerdictRules.endsRegistration(storedVersion: stored, notifiedVersion: entry.version) else { return }
            try transaction.unregister(entry.key, version: entry.version, at: time)
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
            // Not waited for: it has its place in the queue of commits, before the same request can be looked at again.
            store.enqueue { try $0.remember(answer: codes, to: finished.request.envelopeID, at: time) }
        }
        publisher.publish(finished.answer)
    }

    /// What is in the outbox stays there from now on.
    func postNoMore() {
        state.withLock { $0.queue.drain() }
    }

    /// After ``postNoMore()``: whether something is still on its way to gorush.
    var isPosting: Bool { state.withLock { !$0.queue.isDrained } }

    /// Requests whose answers wait for deliveries.
    var hasRequests: Bool { state.withLock { !$0.requests.isEmpty } }

    var waitingCount: Int { state.withLock { $0.deliveries.count } }
}

extension OutboxEntry {
    /// Unique among all that this gorush ever gets: derived from what is delivered to whom.
    fileprivate var notificationID: String { String(delivery.hex.prefix(32)) }

    fileprivate var notificationForGorush: Notification {
        Notification(
            id: notificationID, platform: platform, deviceToken: deviceToken, apnTopic: apnTopic, kind: notification.kind,
            chatID: notification.chatID, registrant: key.keyHash, message: notification.message, installationID: key.installationID)
    }
}

/// What the outbox has of a batch.
private struct LoadedBatch: Sendable {
    var entries: [OutboxEntry] = []
    /// gorush took them before.
    var accepted: [Int64] = []
    /// The device was unregistered meanwhile.
    var gone: [Int64] = []
    /// The row was altered, or is of a version that this one does not know.
    var unreadable: [Int64] = []

    /// - Throws: when the database fails. A row that can't be opened is no reason.
    init(_ ids: [Int64], _ names: [Int64: DeliveryID], _ transaction: StoreTransaction) throws {
        for id in ids {
            do {
                if let entry = try transaction.outboxEntry(id) {
                    entries.append(entry)
                } else if let delivery = names[id], try transaction.wasAccepted(delivery) {
                    accepted.append(id)
                } else {
                    gone.append(id)
                }
            } catch is CryptoError {
                unreadable.append(id)
            } catch is ProtobufError {
                unreadable.append(id)
            }
        }
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
