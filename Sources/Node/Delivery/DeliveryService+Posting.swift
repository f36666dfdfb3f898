import Logging
import NodeMetrics
import Core
import Storage
import Synchronization
import Waku

/// Posting a batch: load it, post it, store in one commit which notifications gorush accepted, apply its token failures, report outcomes.
extension DeliveryService {
    func post(_ batch: DeliveryQueue.Batch, to endpoint: EndpointID) async {
        let read = steadyNow
        guard let loaded = await load(batch, for: endpoint),
            let deliveries = await marked(withoutPostponed(loaded, of: batch, at: endpoint)), !deliveries.isEmpty,
            share == nil || steadyNow < read + configuration.rowAge
        else { return await finished(batch, of: endpoint, .notPosted) }
        let postID = PostID(endpoint: endpoint, batch: batch.id)
        feedback.began(postID, deliveries.map(\.waiting.delivery))
        let sent = steadyNow
        let trace = table.withLock { $0.sent(batch, count: deliveries.count, by: endpoint, now: sent) }
        // The request has left, so the run loop must watch for slowness.
        wakeUp.signal()
        let result = await TraceContext.$current.withValue(trace) { await post(deliveries, of: batch, to: endpoint) }
        let answered = steadyNow
        // The answer may let other posts go out before its result is stored.
        if table.withLock({ $0.answered(batch, result.outcome, by: endpoint, now: answered) }) { wakeUp.signal() }
        var acceptance = Acceptance()
        if case .accepted = result.outcome {
            guard let kept = await keepAcceptance(of: deliveries, result) else { return }
            acceptance = kept
        }
        feedback.ended(postID)
        await finished(batch, of: endpoint, result.outcome, acceptance)
        guard !acceptance.unstored.isEmpty else { return }
        wakeUp.signal()
        await keepLater(acceptance.unstored)
    }

    /// Posts to a gorush or a push service, and counts the result.
    private func post(_ deliveries: [QueuedDelivery], of batch: DeliveryQueue.Batch, to endpoint: EndpointID) async -> PostResult {
        switch endpoint {
        case .unroutable: return PostResult(outcome: .notPosted, postedTokenCount: deliveries.count)
        case .webPush(let origin): return await postWebPush(deliveries[0], of: batch, to: origin)
        case .gorush(let index):
            let start = ContinuousClock.now
            let sandbox = routing.rules[index].sandboxTopics
            let result = await gorush[index].posting.post(deliveries.compactMap { $0.notification(sandbox: sandbox) })
            counters.posted(result, took: start.duration(to: .now))
            note(result, deliveries.count, index)
            return result
        }
    }

    // MARK: Loading

    /// The deliveries of a batch by their state in the outbox.
    private struct Loaded: Sendable {
        var postable: [QueuedDelivery] = []
        var unreadable: [Int64] = []
        /// In the outbox though their devices are not registered: another node enqueued them while this one removed the device, or the registration
        /// has expired and is not removed yet.
        var orphaned: [Int64] = []
        var gone: [(id: Int64, outcome: DeliveryOutcome)] = []
        var replaced: [(id: Int64, by: WaitingDelivery)] = []
    }

    /// The rows found for a batch in the outbox and of its devices; for ids without a row, the stored state of their deliveries.
    private struct Found: Sendable {
        let stored: [Int64: (waiting: WaitingDelivery, sealed: [UInt8])]
        let devices: [DeviceID: Row]
        let others: [Int64: (waiting: WaitingDelivery?, isAccepted: Bool)]
    }

    private func find(_ batch: DeliveryQueue.Batch, _ recent: [Int64: QueuedDelivery]) -> StoreCommand<Found> {
        sources.versions(of: recent.values.lazy.map(\.waiting.device)).then { [self] versions in
            // If a device registered anew or was removed, its delivery is read again.
            let others = batch.deliveries.filter { id in
                guard let delivery = recent[id] else { return true }
                return versions[delivery.waiting.device] != delivery.address.version
            }
            guard !others.isEmpty else { return .done(Found(stored: [:], devices: [:], others: [:])) }
            return DeliveryStorage.stored(others).then { [self] stored in
                let missing = others.filter { stored[$0] == nil }
                return sources.rows(of: stored.values.lazy.map(\.waiting.device)).then { [self] devices in
                    findMissing(missing).map { Found(stored: stored, devices: devices, others: $0) }
                }
            }
        }
    }

    private func findMissing(_ ids: [Int64]) -> StoreCommand<[Int64: (waiting: WaitingDelivery?, isAccepted: Bool)]> {
        let deliveries = table.withLock { table in ids.compactMap { id in table.delivery(id).map { (id, $0) } } }
        return DeliveryStorage.states(of: deliveries.map(\.1)).then { states in
            StoreCommand.each(deliveries.map { DeliveryStorage.waiting($0.1) }).map { waiting in
                var found: [Int64: (waiting: WaitingDelivery?, isAccepted: Bool)] = [:]
                for (index, (id, _)) in deliveries.enumerated() { found[id] = (waiting[index], states[index] == .accepted) }
                return found
            }
        }
    }

    private func sort(_ batch: DeliveryQueue.Batch, _ recent: [Int64: QueuedDelivery], _ found: Found, for endpoint: EndpointID) -> Loaded {
        var loaded = Loaded()
        // A step of the system clock must not end registrations, and a clock that was ahead at the start is set right later.
        let clock = min(now(), steadyNow)
        for id in batch.deliveries {
            let postable: QueuedDelivery
            if let stored = found.stored[id] {
                guard let row = found.devices[stored.waiting.device] else {
                    loaded.gone.append((id, .unregistered))
                    loaded.orphaned.append(id)
                    continue
                }
                guard let opened = open(stored.waiting, stored.sealed, row) else {
                    loaded.unreadable.append(id)
                    continue
                }
                postable = opened
            } else if let other = found.others[id] {
                // Accepted before, or deleted when its device was removed; the device may have registered again since, and the same request may have
                // been repeated.
                if let waiting = other.waiting {
                    loaded.replaced.append((id, by: waiting))
                } else {
                    loaded.gone.append((id, other.isAccepted ? .accepted : .unregistered))
                }
                continue
            } else if let current = recent[id] {
                postable = current
            } else {
                continue
            }
            if let end = postable.address.endsAt, end <= clock {
                loaded.gone.append((id, .unregistered))
                loaded.orphaned.append(id)
                continue
            }
            if routing.endpoint(for: postable.address) == endpoint {
                loaded.postable.append(postable)
            } else {
                // The device registered anew, for another app.
                loaded.replaced.append((id, by: postable.waiting))
            }
        }
        return loaded
    }

    /// nil when the row was altered, or was written in a format that this version does not know.
    private func open(_ waiting: WaitingDelivery, _ sealed: [UInt8], _ row: Row) -> QueuedDelivery? {
        guard let source = sources[waiting.device.protocol], let address = try? source.address(of: row),
            let payload = try? DeliveryStorage.payload(sealed, of: waiting.delivery, by: store.sealer),
            let content = try? source.content(of: payload, to: row)
        else { return nil }
        return QueuedDelivery(waiting, to: address, content)
    }

    /// Returns the deliveries of a batch to post, in its order. The others leave the queue before the batch finishes, so that its outcome does not
    /// apply to them. nil when the outbox can't be read.
    private func load(_ batch: DeliveryQueue.Batch, for endpoint: EndpointID) async -> [QueuedDelivery]? {
        let recent = table.withLock { $0.takePostable(of: batch) }
        let loaded: Loaded
        do throws(StoreError) {
            // Rows are decrypted on the store's thread, too, as there may be many.
            loaded = try await store.onReader { store throws(StoreError) in
                self.sort(batch, recent, try store.read(self.find(batch, recent)), for: endpoint)
            }
        } catch {
            errors.log("failed to read the outbox", reason: error.message)
            return nil
        }
        if !loaded.replaced.isEmpty {
            let held = table.withLock { table in
                let held = table.heldUntil(loaded.replaced.lazy.filter { $0.id == $0.by.id }.map(\.id))
                for (id, _) in loaded.replaced { table.forget(id) }
                return held
            }
            await enqueueFromOutbox(loaded.replaced.map(\.by), heldUntil: held)
        }
        counters.add(.notificationUnregistered, loaded.gone.count { $0.outcome == .unregistered })
        if !loaded.gone.isEmpty { notifyWaiters(table.withLock { table in loaded.gone.flatMap { table.end($0.id, as: $0.outcome) } }) }
        if !loaded.orphaned.isEmpty {
            await keep(DeliveryStorage.drop(loaded.orphaned, of: sources, at: now()), "notifications of ended devices not removed")
        }
        if !loaded.unreadable.isEmpty {
            logger.error("dropped unreadable notifications", metadata: ["count": .stringConvertible(loaded.unreadable.count)])
            table.withLock { $0.remove(loaded.unreadable, from: endpoint) }
            await drop(loaded.unreadable, .notificationUnreadable)
        }
        return loaded.postable
    }

    // MARK: Results

    /// The changes that store the acceptance of a delivery.
    private struct StoredAcceptance {
        let id: Int64
        let changes: [Change]
    }

    /// What gorush's reply says about an accepted batch.
    private struct Acceptance {
        /// Deliveries that gorush had no room for, and those that are posted to a newer registration.
        var notAccepted: Set<Int64> = []
        /// Those whose tokens failed, so that their devices were unregistered.
        var ended: Set<DeliveryID> = []
        /// Those that gorush accepted, and whose rows are damaged.
        var unstored: [StoredAcceptance] = []
    }

    /// Stores the acceptance of a batch and applies its token failures. nil if the node stops before the acceptance is stored.
    private func keepAcceptance(of deliveries: [QueuedDelivery], _ result: PostResult) async -> Acceptance? {
        let time = now()
        let notAccepted = result.notAccepted
        let byID =
            result.failures.isEmpty && result.sharedIDs.isEmpty
            ? [:] : Dictionary(deliveries.map { ($0.waiting.delivery.notificationID, $0) }, uniquingKeysWith: { first, _ in first })
        let left = Set(notAccepted.compactMap { byID[$0]?.waiting.id })
        let taken = left.isEmpty ? deliveries : deliveries.filter { !left.contains($0.waiting.id) }
        let failures = result.failures.compactMap { failure -> TokenFailure? in
            // gorush had no room for those, and did not try them.
            guard let delivery = byID[failure.notificationID], !left.contains(delivery.waiting.id) else { return nil }
            return TokenFailure(posted: delivery.posted, credentialScope: delivery.credentialScope, reason: failure.reason)
        }
        let complaints = await feedback.judge(failures, of: taken, at: time)
        guard let superseded = await superseded(failures) else { return nil }
        let kept = superseded.isEmpty ? taken : taken.filter { !superseded.contains($0.waiting.delivery) }
        let shared = result.sharedIDs.compactMapValues { byID[$0]?.waiting.delivery }
        let acceptances = kept.map { delivery in
            let changes =
                DeliveryStorage.accept(
                    delivery.posted, postedAs: shared.isEmpty ? nil : shared[delivery.waiting.delivery.notificationID], at: time)
                + sources.noteAccepted(delivery.waiting.device, at: time)
            return StoredAcceptance(id: delivery.waiting.id, changes: changes)
        }
        guard let (hasDoubts, unstored) = await keepEach(acceptances) else { return nil }
        let failed = Set(failures.lazy.map(\.posted.delivery))
        let delivered = taken.filter { !failed.contains($0.waiting.delivery) }.map(\.address)
        let accepted = steadyNow
        table.withLock { table in
            table.becameKnown(delivered.filter { $0.gorushDevice != nil }.map { PushRecipient($0) })
            table.becameKnown(delivered.compactMap(\.knownSubscription), at: accepted)
        }
        // Separate from the acceptance, which must be stored even if a row about tokens is invalid.
        let current = complaints.filter { !superseded.contains($0.posted.delivery) }
        counters.add(.tokenFailureStale, complaints.count - current.count)
        let ended = await feedback.settle(current, besides: hasDoubts ? kept : [], at: time)
        let retried = taken.lazy.filter { superseded.contains($0.waiting.delivery) }.map(\.waiting.id)
        return Acceptance(notAccepted: left.union(retried), ended: ended, unstored: unstored)
    }

    /// The deliveries whose tokens failed after their devices had registered again. Nothing was shown, so they stay in the outbox, and are posted to the
    /// present registrations. nil if the node stops before these are read.
    private func superseded(_ failures: [TokenFailure]) async -> Set<DeliveryID>? {
        let failures = failures.filter { $0.reason.verdict == .dead || $0.reason.verdict == .doubtful }
        guard !failures.isEmpty else { return [] }
        let current = sources.versions(of: failures.map(\.posted.device))
        guard let versions = await keep(current, "registrations of failed tokens not read", ifDamaged: [:]) else { return nil }
        let superseded = failures.lazy.map(\.posted).filter { posted in
            VerdictRules.isSuperseded(storedVersion: versions[posted.device], notifiedVersion: posted.version)
        }
        return Set(superseded.map(\.delivery))
    }

    private static let unstoredMessage = "acceptance not stored"

    /// Stores acceptances in one commit. If that meets damaged rows, stores each by itself, so that one row does not keep the others, and the place
    /// of their post, for ever.
    ///
    /// - Returns: whether tokens may be in doubt, and the acceptances that met damaged rows; nil if the node stops before.
    private func keepEach(_ acceptances: [StoredAcceptance]) async -> (hasDoubts: Bool, unstored: [StoredAcceptance])? {
        let all = acceptances.flatMap(\.changes)
        let together = DeliveryStorage.hasDoubts().then { StoreCommand<Bool?>.change(all, $0) }
        guard let hasDoubts = await keep(together, Self.unstoredMessage, ifDamaged: .some(nil)) else { return nil }
        if let hasDoubts { return (hasDoubts, []) }
        var unstored: [StoredAcceptance] = []
        for acceptance in acceptances {
            guard let isStored = await keep(.change(acceptance.changes, true), Self.unstoredMessage, ifDamaged: false) else { return nil }
            if !isStored { unstored.append(acceptance) }
        }
        return (true, unstored)
    }

    /// Stores acceptances once their rows can be written again, as after a failed read of the disk. Until then their deliveries are in no queue, and
    /// requests get no outcome.
    private func keepLater(_ acceptances: [StoredAcceptance]) async {
        var unstored = acceptances
        while !unstored.isEmpty, (try? await Task.sleep(for: configuration.damagePause)) != nil {
            let results = await store.commitEach(unstored.map { StoreCommand<Bool>.change($0.changes, true) })
            for (acceptance, result) in zip(unstored, results) {
                guard case .success = result else { continue }
                counters.add(.notificationAccepted)
                notifyWaiters(table.withLock { $0.end(acceptance.id, as: .accepted) })
            }
            unstored = zip(unstored, results).filter { if case .failure = $1 { true } else { false } }.map(\.0)
        }
    }

    private func note(_ result: PostResult, _ count: Int, _ endpoint: Int) {
        let name = routing.rules[endpoint].name
        counters.add(.notificationUncounted, result.ignoredTokenCount)
        counters.add(.tokenFailureUnmatched, result.unmatchedFailureCount)
        if result.ignoredTokenCount > 0 {
            errors.log(
                "gorush did not count all notifications", reason: "\(name): are their platforms enabled?", count: result.ignoredTokenCount)
        }
        let reason = result.reason ?? "unknown"
        switch result.outcome {
        case .accepted:
            let count = result.notAccepted.count
            if count > 0 { errors.log("gorush had no room for notifications", reason: "\(name): its queue is full", count: count) }
        case .refused: errors.log("gorush refused notifications", reason: "\(name): \(reason)", count: count)
        case .notPosted, .unpostable: break
        case .failed, .unclear:
            counters.add(.postFailed)
            table.withLock { $0.failed(reason, at: endpoint) }
            if result.isOperatorsMistake {
                feedback.alarm(.gorushMisconfigured, "gorush can't be used as configured", ["endpoint": "\(name)", "reason": "\(reason)"])
            }
            errors.log("failed to post notifications", reason: "\(name): \(reason)", count: count)
        }
    }

    /// Reports when an endpoint becomes slow, and when it answers in time again.
    func noteSlowness(at now: Timestamp) {
        let changes = table.withLock { table in
            let changes = table.slownessChanges(now: now)
            // Within the lock, as in `finished`.
            for case let (_, slowness?) in changes { feedback.alarms.raise(.gorushSlow, "\(slowness)") }
            if !changes.isEmpty, !table.isAnySlow { feedback.alarms.clear(.gorushSlow) }
            return changes
        }
        for (index, slowness) in changes {
            let name: Logger.MetadataValue = "\(routing.rules[index].name)"
            if let slowness {
                counters.add(.gorushSlowed)
                logger.warning(
                    "gorush is slow",
                    metadata: [
                        "endpoint": name, "posts": .stringConvertible(slowness.postCount),
                        "unanswered_s": .stringConvertible(Int(slowness.age / .seconds(1))),
                    ])
            } else {
                logger.info("gorush no longer slow", metadata: ["endpoint": name])
            }
        }
    }

    private func finished(
        _ batch: DeliveryQueue.Batch, of endpoint: EndpointID, _ outcome: PostOutcome, _ acceptance: Acceptance = Acceptance()
    ) async {
        let now = steadyNow
        // Alarms change within the lock, so that the breaker changes of two batches are reported in order.
        let finished = table.withLock { table in
            // They are still in the outbox: in no queue, but known to the table, they are not posted again.
            table.remove(acceptance.unstored.map(\.id), from: endpoint)
            let finished = table.finished(
                batch, outcome, by: endpoint, except: acceptance.notAccepted, ended: acceptance.ended, now: now)
            guard endpoint.gorushIndex != nil else { return finished }
            switch finished.breakerChange {
            case .opened: feedback.alarms.raise(.gorushGivenUp, finished.failure)
            case .closed: if table.areAllBreakersClosed { feedback.alarms.clear(.gorushGivenUp) }
            case nil: break
            }
            return finished
        }
        for times in finished.accepted { counters.reached(.accepted, .request, times: times) }
        counters.add(.notificationAccepted, finished.accepted.count)
        counters.add(.notificationRetried, finished.retriedCount)
        notifyWaiters(finished.completed)
        if let index = endpoint.gorushIndex { note(finished, index) }
        guard !finished.refused.isEmpty else { return }
        await drop(finished.refused, endpoint.isPushService ? .notificationNotWebPushed : .notificationRefused)
    }

    private func note(_ finished: DeliveryTable.Finished, _ endpoint: Int) {
        let name: Logger.MetadataValue = "\(routing.rules[endpoint].name)"
        switch finished.breakerChange {
        case .opened:
            counters.add(.gorushOpened)
            logger.warning("gorush unavailable", metadata: ["endpoint": name, "reason": "\(finished.failure)"])
        case .closed: logger.info("gorush available again", metadata: ["endpoint": name])
        case nil: break
        }
    }
}
