import Gorush
import Logging
import NodeMetrics
import PushStore
import StatusProtocol
import Synchronization
import Waku

/// The way of a batch: load, post, note in one commit what gorush took, settle what it said of tokens, tell who waits.
extension Deliveries {
    func post(_ batch: DeliveryQueue.Batch, to endpoint: Int) async {
        guard let entries = await load(batch, for: endpoint), !entries.isEmpty else {
            await finished(batch, of: endpoint, .notPosted)
            return
        }
        let post = PostID(endpoint: endpoint, batch: batch.id)
        feedback.began(post, entries.map(\.delivery))
        let sandbox = routing.rules[endpoint].sandboxTopics
        let notifications = entries.map { $0.notificationForGorush(sandbox: sandbox) }
        let start = ContinuousClock.now
        let sent = steadyNow
        state.withLock { $0.queues[endpoint].sent(batch.id, count: notifications.count, now: sent) }
        let result = await gorush[endpoint].posting.post(notifications)
        let answered = steadyNow
        let wasSlow = state.withLock { state in
            defer { state.queues[endpoint].answered(batch.id, outcome: result.outcome, now: answered) }
            return state.queues[endpoint].slowness(at: answered) != nil
        }
        // An answer may let other posts go out, before this one's result is stored.
        if wasSlow { wakeUp() }
        counters.posted(result, took: start.duration(to: .now))
        note(result, entries.count, endpoint)
        var untaken: Set<Int64> = []
        if case .accepted = result.outcome { untaken = await keepAcceptance(of: entries, result) }
        feedback.ended(post)
        await finished(batch, of: endpoint, result.outcome, except: untaken)
    }

    /// What the outbox has of a batch.
    private struct Loaded: Sendable {
        var entries: [OutboxEntry] = []
        var unreadable: [Int64] = []
        /// For apps that no gorush is configured for.
        var unroutable: [Int64] = []
        var gone: [(Int64, PushNotificationReport.ErrorType?)] = []
        var replaced: [(Int64, by: WaitingDelivery)] = []
    }

    private func load(_ batch: DeliveryQueue.Batch, for endpoint: Int, _ transaction: StoreTransaction) throws -> Loaded {
        let recent = state.withLock { state in
            batch.deliveries.reduce(into: [Int64: OutboxEntry]()) { $0[$1] = state.entries.removeValue(forKey: $1) }
        }
        var loaded = Loaded()
        var found: [Int64: StoredOutboxEntry] = [:]
        for (id, entry) in recent where try transaction.isCurrent(entry) { found[id] = .entry(entry) }
        let others = batch.deliveries.filter { found[$0] == nil }
        if !others.isEmpty { found.merge(try transaction.outboxEntries(others)) { first, _ in first } }
        for id in batch.deliveries {
            switch found[id] {
            case .entry(let entry):
                switch routing.endpoint(for: entry.platform, apnTopic: entry.apnTopic) {
                case endpoint: loaded.entries.append(entry)
                case nil: loaded.unroutable.append(id)
                // The device registered anew, for another app.
                default:
                    if let waiting = try transaction.waiting(entry.delivery) { loaded.replaced.append((id, by: waiting)) }
                }
            case .unreadable: loaded.unreadable.append(id)
            case .unregistered: loaded.gone.append((id, .notRegistered))
            case nil:
                // Accepted before, or deleted by an unregistration, after which the device may have been registered anew and the
                // same request have come again.
                guard let delivery = state.withLock({ $0.deliveries[id]?.delivery }) else { continue }
                if let waiting = try transaction.waiting(delivery) {
                    loaded.replaced.append((id, by: waiting))
                } else {
                    loaded.gone.append((id, try transaction.wasAccepted(delivery) ? nil : .notRegistered))
                }
            }
        }
        return loaded
    }

    /// What of a batch is to be posted, in its order. What is not leaves the queue before the batch is finished: its outcome says nothing of
    /// that. nil when the outbox can't be read.
    private func load(_ batch: DeliveryQueue.Batch, for endpoint: Int) async -> [OutboxEntry]? {
        let loaded: Loaded
        do throws(StoreError) {
            loaded = try await store.fetch { try self.load(batch, for: endpoint, $0) }
        } catch {
            logger.error("outbox not readable", metadata: ["reason": "\(error.message)"])
            return nil
        }
        if !loaded.replaced.isEmpty {
            state.withLock { state in
                for (id, _) in loaded.replaced { state.forget(id) }
            }
            await enqueueFromOutbox(loaded.replaced.map(\.by))
        }
        if !loaded.gone.isEmpty { finish(state.withLock { state in loaded.gone.flatMap { state.end($0.0, as: $0.1) } }) }
        if !loaded.unreadable.isEmpty {
            logger.error("notifications can't be read, and are given up", metadata: ["count": "\(loaded.unreadable.count)"])
            await giveUp(loaded.unreadable, .notificationUnreadable, endpoint)
        }
        if !loaded.unroutable.isEmpty {
            logger.error("notifications are for apps that no gorush is configured for", metadata: ["count": "\(loaded.unroutable.count)"])
            await giveUp(loaded.unroutable, .notificationUnroutable, endpoint)
        }
        return loaded.entries
    }

    private func giveUp(_ ids: [Int64], _ counter: Counter, _ endpoint: Int) async {
        state.withLock { state in
            for id in ids { state.queues[endpoint].remove(id) }
        }
        await drop(ids, counter)
    }

    /// Returns those that gorush had no room for.
    private func keepAcceptance(of entries: [OutboxEntry], _ result: PostResult) async -> Set<Int64> {
        let time = now()
        let untaken = result.untaken
        let byID =
            result.failures.isEmpty && result.sharedIDs.isEmpty
            ? [:] : Dictionary(entries.map { ($0.delivery.notificationID, $0) }, uniquingKeysWith: { first, _ in first })
        let left = Set(untaken.compactMap { byID[$0]?.id })
        let taken = left.isEmpty ? entries : entries.filter { !left.contains($0.id) }
        let failures = result.failures.compactMap { failure in
            byID[failure.notificationID].map { TokenFailure($0, failure.reason) }
        }
        let complaints = feedback.judge(failures, of: taken, at: time)
        let shared = result.sharedIDs.compactMapValues { byID[$0]?.delivery }
        let hasDoubts = await keep("acceptance not stored") { transaction in
            for entry in taken {
                try transaction.accepted(
                    entry.delivery, registration: (entry.registration, entry.version),
                    postedAs: shared.isEmpty ? nil : shared[entry.delivery.notificationID], at: time)
            }
            return try transaction.hasDoubts()
        }
        // Apart from the acceptance, which must be kept whatever a row about tokens holds.
        await feedback.settle(complaints, besides: hasDoubts == true ? taken : [], at: time)
        return left
    }

    private func note(_ result: PostResult, _ count: Int, _ endpoint: Int) {
        let name: Logger.MetadataValue = "\(routing.rules[endpoint].name)"
        counters.add(.notificationUncounted, result.ignoredTokenCount)
        counters.add(.tokenFailureUnmatched, result.unmatchedFailureCount)
        if result.ignoredTokenCount > 0 {
            logger.warning(
                "gorush did not count all notifications: is a platform disabled there?",
                metadata: ["endpoint": name, "missing": "\(result.ignoredTokenCount)"])
        }
        if case .refused = result.outcome {
            logger.warning(
                "gorush refused notifications",
                metadata: ["endpoint": name, "count": "\(count)", "reason": "\(result.reason ?? "unknown")"])
        }
        if case .failed = result.outcome {
            counters.add(.postFailed)
            let reason = result.reason ?? "unknown"
            state.withLock { $0.failures[endpoint] = reason }
            if result.isOperatorsMistake {
                feedback.alarm(.gorushMisconfigured, "gorush can't be used as configured", ["endpoint": name, "reason": "\(reason)"])
            }
        }
    }

    /// Reports the beginning and the end of a time in which gorush owes answers.
    func noteSlowness(at now: Timestamp) {
        let changes = state.withLock { state in
            state.queues.indices.compactMap { index -> (Int, DeliveryQueue.Slowness?)? in
                let slowness = state.queues[index].slowness(at: now)
                guard state.isSlow[index] != (slowness != nil) else { return nil }
                state.isSlow[index] = slowness != nil
                // Within the lock, as in `finished`.
                if let slowness {
                    feedback.alarms.raise(.gorushSlow, "\(slowness)")
                } else if !state.isSlow.contains(true) {
                    feedback.alarms.clear(.gorushSlow)
                }
                return (index, slowness)
            }
        }
        for (index, slowness) in changes {
            let name: Logger.MetadataValue = "\(routing.rules[index].name)"
            if let slowness {
                counters.add(.gorushSlowed)
                logger.warning(
                    "gorush is slow",
                    metadata: ["endpoint": name, "posts": "\(slowness.postCount)", "unanswered_s": "\(Int(slowness.age / .seconds(1)))"])
            } else {
                logger.info("gorush answers in time again", metadata: ["endpoint": name])
            }
        }
    }

    private enum BreakerChange {
        case opened, closed
    }

    private func finished(
        _ batch: DeliveryQueue.Batch, of endpoint: Int, _ outcome: DeliveryQueue.Outcome, except untaken: Set<Int64> = []
    ) async {
        var (accepted, retried) = (0, 0)
        var refused: [Int64] = []
        let now = steadyNow
        // Alarms within the lock: what two batches find of the breakers must not cross on its way.
        let (done, change, failure) = state.withLock { state -> ([PendingRequestTable.Finished], BreakerChange?, String) in
            let before = state.queues[endpoint].breaker
            var done: [PendingRequestTable.Finished] = []
            for resolution in state.queues[endpoint].finished(batch.id, outcome: outcome, except: untaken, now: now) {
                switch resolution {
                case .accepted(let id):
                    accepted += 1
                    counters.reached(.accepted, .request, state.times[id])
                    done += state.end(id, as: nil)
                case .dropped(let id): refused.append(id)
                case .retrying: retried += 1
                }
            }
            let after = state.queues[endpoint].breaker
            if after.isOpen(at: now) { done += state.failAwaited(at: endpoint) }
            let failure = state.failures[endpoint]
            switch (before.isClosed, after.isClosed) {
            case (true, false):
                feedback.alarms.raise(.gorushGivenUp, failure)
                return (done, .opened, failure)
            case (false, true):
                if state.queues.allSatisfy(\.breaker.isClosed) { feedback.alarms.clear(.gorushGivenUp) }
                return (done, .closed, failure)
            default: return (done, nil, failure)
            }
        }
        let name: Logger.MetadataValue = "\(routing.rules[endpoint].name)"
        counters.add(.notificationAccepted, accepted)
        counters.add(.notificationRetried, retried)
        finish(done)
        switch change {
        case .opened:
            counters.add(.gorushOpened)
            logger.warning("gorush takes no notifications", metadata: ["endpoint": name, "reason": "\(failure)"])
        case .closed: logger.info("gorush takes notifications again", metadata: ["endpoint": name])
        case nil: break
        }
        if !refused.isEmpty { await drop(refused, .notificationRefused) }
    }
}

extension OutboxEntry {
    fileprivate func notificationForGorush(sandbox: Set<String>) -> Notification {
        Notification(
            id: delivery.notificationID, platform: platform, deviceToken: deviceToken, apnTopic: apnTopic, kind: notification.kind,
            chatID: notification.chatID, registrant: key.keyHash, message: notification.message, installationID: key.installationID,
            isForSandbox: platform == .apn && sandbox.contains(apnTopic))
    }
}

extension Deliveries.State {
    /// gorush is given up: requests that wait for a notification to be posted would wait in vain. One whose post is unanswered may still be
    /// accepted in time: those requests wait until their deadline.
    fileprivate mutating func failAwaited(at endpoint: Int) -> [PendingRequestTable.Finished] {
        let unanswered = Set(queues[endpoint].deliveriesInFlight.compactMap { deliveries[$0]?.delivery })
        var done: [PendingRequestTable.Finished] = []
        for delivery in Array(requests.awaited) where ids[delivery] == endpoint && !unanswered.contains(delivery) {
            done += requests.resolve(delivery, as: .internalError)
        }
        return done
    }
}
