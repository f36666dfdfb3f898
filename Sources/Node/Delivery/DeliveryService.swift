package import Logging
package import NodeMetrics
package import Core
package import Storage
import Synchronization
import Waku

/// Carries out the decisions of ``DeliveryTable``: posts notifications from the outbox to gorush and reports outcomes to the waiting requests.
package final class DeliveryService: Sendable {
    package struct Configuration: Sendable {
        /// How long the answer to a request waits for gorush.
        package var awaitLimit = Duration.seconds(2)
        /// The maximum time from the arrival of a request to its answer, which is an error if the store has not reported the outcome by then. Shorter
        /// than the clients' timeout of 3 s, and longer than ``awaitLimit``, so that gorush has its full time if the store answers within half a second.
        package var answerLimit: Duration { awaitLimit + .milliseconds(500) }
        /// The maximum number of notifications waiting for each gorush. Beyond it each new one displaces one; inherited ones, which an earlier run left or
        /// this node takes over from others, may be more.
        package var outboxLimit = 100_000
        /// See ``UnknownOutcome/hold``.
        package var unknownHold = Duration.seconds(5)
        /// With a share, how long after its row was read a device may be posted to: another node may acknowledge a new token while the marks are stored.
        /// Nodes whose database takes longer lose their leases.
        package var rowAge = Duration.seconds(5)
        /// The pause between two attempts to store acceptances whose rows are damaged.
        package var damagePause = Duration.seconds(10)
        /// How often a health check reads a gorush's certificate again: otherwise a renewed one would be seen with the next notification only, and alerts
        /// about the former one would go on until then.
        package var certificateInterval = Duration.seconds(3600)
        /// Decrypts the ids in gorush's feedback; nil where no notification is posted in ``PayloadProfile/private``.
        package var ids: NotificationIDCipher?
        /// nil: the node does not post to Web Push services.
        package var webPush: WebPushEndpoint?

        package init() {}
    }

    let store: any Store
    let sources: DeliverySources
    let gorush: [GorushEndpoint]
    let webPush: WebPushEndpoint?
    let webPushSettings: Mutex<NotificationSettings>
    package let routing: EndpointRouting
    package let feedback: Feedback
    let counters: Counters
    let logger: Logger
    let errors: RepeatedErrors
    /// The system clock, for stored times.
    let now: @Sendable () -> Timestamp
    let table: Mutex<DeliveryTable>
    /// nil: this node owns the whole outbox.
    let share: (any OutboxShare)?
    package let configuration: Configuration
    /// The queue's time must not go back: it is the system time at the start plus the monotonic time since then.
    private let started: (clock: Timestamp, uptime: ContinuousClock.Instant)
    /// Signalled when the run loop may have work.
    let wakeUp = WakeUpSignal()

    package init(
        _ configuration: Configuration, store: any Store, share: (any OutboxShare)? = nil, sources: DeliverySources,
        gorush: [GorushEndpoint], counters: Counters, alarms: Alarms, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.store = store
        self.share = share
        self.sources = sources
        self.gorush = gorush
        webPush = configuration.webPush
        webPushSettings = Mutex(configuration.webPush?.settings ?? .none)
        routing = EndpointRouting(gorush.map(\.rule), webPushKeys: configuration.webPush?.keys ?? [])
        feedback = Feedback(
            store: store, sources: sources, ids: configuration.ids, counters: counters, alarms: alarms, logger: logger, now: now)
        self.counters = counters
        self.logger = logger
        errors = RepeatedErrors(logger)
        self.configuration = configuration
        self.now = now
        started = (now(), .now)
        var origins = OriginQueues.Configuration()
        origins.waitingLimit = configuration.outboxLimit
        origins.queue.limit = configuration.outboxLimit
        origins.queue.awaitLimit = configuration.awaitLimit
        if let rate = configuration.webPush?.rate { (origins.standing.rate, origins.standing.burst) = (rate.perSecond, rate.burst) }
        table = Mutex(
            DeliveryTable(
                gorush.map { endpoint in
                    var queue = DeliveryQueue.Configuration()
                    queue.limit = configuration.outboxLimit
                    queue.awaitLimit = configuration.awaitLimit
                    queue.maximumBatchesInFlight = endpoint.connections
                    queue.maximumBatchCount = endpoint.batch
                    queue.breaker.setTimeout(endpoint.timeout)
                    return DeliveryQueue(configuration: queue)
                }, webPush: origins))
    }

    /// Replaces the timeouts of posts, by endpoint, as far as the queues depend on them.
    package func replaceTimeouts(_ timeouts: [Duration]) {
        table.withLock { table in
            for (endpoint, timeout) in zip(table.gorushes.indices, timeouts) {
                table.gorushes[endpoint].queue.breaker.configuration.setTimeout(timeout)
            }
        }
    }

    var steadyNow: Timestamp {
        started.clock + (.now - started.uptime)
    }

    // MARK: Arrivals

    /// Loads the deliveries that an earlier run left in the outbox. Blocks; call it before the node runs.
    ///
    /// - Throws: `StoreError`
    package func load() throws(StoreError) {
        let waiting = try store.read(DeliveryStorage.waitingDeliveries())
        enqueue(waiting, isAwaited: false, heldUntil: holds(of: waiting)) { _ in true }
    }

    /// The time from which each delivery that an earlier run or another node marked may be posted again.
    func holds(of waiting: [WaitingDelivery]) -> [Int64: Timestamp] {
        let (clock, now, outcome) = (now(), steadyNow, UnknownOutcome(hold: configuration.unknownHold))
        return waiting.reduce(into: [:]) { ends, waiting in
            ends[waiting.id] = waiting.markedAt.map { outcome.end(markedAt: $0, clock: clock, now: now) }
        }
    }

    /// Enqueues notifications that were just added to the outbox, in commit order, for requests that wait for them.
    package func enqueue(_ queued: [QueuedDelivery]) {
        add(
            queued.map {
                DeliveryTable.Arrival(
                    waiting: $0.waiting, queued: $0, endpoint: routing.endpoint(for: $0.address),
                    recipient: PushRecipient($0.address))
            }, isAwaited: true)
    }

    /// Enqueues notifications from the outbox, in commit order. Reads their devices, and blocks.
    ///
    /// - Parameters:
    ///   - heldUntil: see ``DeliveryTable/Arrival/heldUntil``.
    ///   - isInherited: see ``DeliveryTable/Arrival/isInherited``.
    private func enqueue(
        _ waiting: [WaitingDelivery], isAwaited: Bool, heldUntil: [Int64: Timestamp] = [:],
        isInherited: (DeviceID) -> Bool = { _ in false }
    ) {
        let addresses = addresses(of: waiting)
        add(
            waiting.map {
                let address = addresses[$0.device]
                return DeliveryTable.Arrival(
                    waiting: $0, endpoint: endpoint(of: $0.device, at: address),
                    recipient: address.map(PushRecipient.init), heldUntil: heldUntil[$0.id], isInherited: isInherited($0.device))
            }, isAwaited: isAwaited)
    }

    /// Does the same on one of the store's threads.
    func enqueueFromOutbox(
        _ waiting: [WaitingDelivery], isAwaited: Bool = true, heldUntil: [Int64: Timestamp] = [:],
        isInherited: @escaping @Sendable (DeviceID) -> Bool = { _ in false }
    ) async {
        try? await store.onReader { _ throws(StoreError) in
            self.enqueue(waiting, isAwaited: isAwaited, heldUntil: heldUntil, isInherited: isInherited)
        }
    }

    private func add(_ arrivals: [DeliveryTable.Arrival], isAwaited: Bool) {
        let own = share.map { share in arrivals.filter { share.owns($0.waiting.device) } } ?? arrivals
        let (now, clock) = (steadyNow, now())
        let unroutable = table.withLock { table in
            let isFirst = table.unroutableCount == 0
            if isAwaited, own.count < arrivals.count {
                let ids = Set(own.lazy.map(\.waiting.id))
                table.markRemote(arrivals.lazy.filter { !ids.contains($0.waiting.id) }.map(\.waiting.delivery))
            }
            table.add(own, isAwaited: isAwaited, clock: clock, now: now)
            return isFirst ? table.unroutableCount : 0
        }
        if unroutable > 0 {
            logger.warning(
                "notifications wait because this node has no endpoint for them", metadata: ["count": .stringConvertible(unroutable)])
        }
        if !own.isEmpty { wakeUp.signal() }
    }

    private static let addressChunk = 500

    /// The endpoint of a notification in the outbox. One whose device can't be read is assigned to the first endpoint, and read again when it is
    /// about to be posted.
    private func endpoint(of device: DeviceID, at address: DeviceAddress?) -> EndpointID {
        guard let address else { return sources[device.protocol] == nil ? .unroutable : .gorush(0) }
        return routing.endpoint(for: address)
    }

    /// The addresses of the devices of notifications in the outbox.
    private func addresses(of waiting: [WaitingDelivery]) -> [DeviceID: DeviceAddress] {
        var found: [DeviceID: DeviceAddress] = [:]
        for chunk in waiting.chunks(of: Self.addressChunk) {
            found.merge((try? store.read(addresses(of: chunk.lazy.map(\.device)))) ?? [:]) { _, last in last }
        }
        return found
    }

    private func addresses(of devices: some Sequence<DeviceID>) -> StoreCommand<[DeviceID: DeviceAddress]> {
        sources.rows(of: devices).map { [sources] rows in
            rows.reduce(into: [:]) { $0[$1.key] = try? sources[$1.key.protocol]?.address(of: $1.value) }
        }
    }

    /// The number of accepted notifications whose recipients are read at the start.
    private static let knownLimit = 100_000
    /// With several nodes, others post for devices that this node may own later.
    private static let knownInterval = Duration.seconds(600)
    private static let knownRetryInterval = Duration.seconds(1)

    /// Reads for which recipients gorush accepted notifications, and which push services did, under the registration that a device has now.
    private func readKnown() async {
        while true {
            var hasFailed = false
            do throws(StoreError) {
                let accepted = Array(try await store.fetch(DeliveryStorage.recentlyAccepted(limit: Self.knownLimit)))
                for chunk in accepted.chunks(of: Self.addressChunk) {
                    let addresses = try await store.fetch(addresses(of: chunk.lazy.map(\.key)))
                    let current = chunk.compactMap { device, version in addresses[device].flatMap { $0.version == version ? $0 : nil } }
                    let known = current.filter { $0.gorushDevice != nil }.map { PushRecipient($0) }
                    // Anyone can run a push service that accepts: a Web Push subscription earns a standing at its service alone.
                    let subscriptions = current.compactMap(\.knownSubscription)
                    let services = Set(subscriptions.map(\.origin))
                    let now = steadyNow
                    table.withLock { table in
                        table.becameKnown(known)
                        table.becameKnown(subscriptions)
                        table.origins.acceptedBefore(services, now: now)
                    }
                    if !services.isEmpty { wakeUp.signal() }
                }
            } catch {
                errors.log("failed to read accepted notifications", reason: error.message)
                hasFailed = true
            }
            guard hasFailed || share != nil else { return }
            guard (try? await Task.sleep(for: hasFailed ? Self.knownRetryInterval : Self.knownInterval)) != nil else { return }
        }
    }

    /// Waits for deliveries that were enqueued before, up to the configured limit. Deliveries for a gorush that is known to be unavailable fail at
    /// once.
    package func await(_ awaited: AwaitedDeliveries) {
        let now = steadyNow
        // A message older than the answer limit, such as one handled after an outage, gets the full wait limit.
        let (awaitLimit, answerLimit) = (configuration.awaitLimit, configuration.answerLimit)
        let left = awaited.received.map { answerLimit - ($0.duration(to: .now)) }.flatMap { $0 > .zero ? $0 : nil } ?? awaitLimit
        switch table.withLock({ $0.await(awaited, deadline: now + min(awaitLimit, left), now: now) }) {
        case .refused(let completed): completed.notify()
        case .waits(let unknown):
            wakeUp.signal()
            for delivery in unknown { store.onReader { self.lookUp(delivery) } }
        }
    }

    /// Looks up a delivery that is not in the queue: it may have ended meanwhile, or another process may have left it in the outbox.
    private func lookUp(_ delivery: DeliveryID) {
        if let waiting = try? store.read(DeliveryStorage.waiting(delivery)) {
            enqueue([waiting], isAwaited: true)
        } else {
            let state = try? store.read(DeliveryStorage.states(of: [delivery]))[0]
            notifyWaiters(table.withLock { $0.resolve(delivery, as: state == .accepted ? .accepted : .failed) })
        }
    }

    func notifyWaiters(_ completed: [AwaitedDeliveryTable.Completed]) {
        for one in completed { one.notify() }
    }

    // MARK: Running

    /// Runs until cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.feedback.run() }
            group.addTask { await self.readKnown() }
            for endpoint in gorush.indices {
                group.addTask {
                    await self.probe(endpoint)
                    await self.probeWhileIdle(endpoint)
                }
            }
            var timer: Task<Void, Never>?
            var timerEnd: Timestamp?
            for await _ in wakeUp {
                let now = steadyNow
                let step = table.withLock { $0.step(now: now) }
                notifyWaiters(step.completed)
                noteSlowness(at: now)
                noteLongWait(at: now)
                for (endpoint, action) in step.actions { carryOut(action, at: endpoint, in: &group) }
                // There is one timer; it is replaced only when work is due before it fires.
                if let end = timerEnd, end <= now { timerEnd = nil }
                if let next = step.next, timerEnd.map({ next < $0 }) ?? true {
                    timer?.cancel()
                    let pause = max(next.since(now), .milliseconds(1))
                    timerEnd = now + pause
                    timer = Task {
                        try? await Task.sleep(for: pause)
                        if !Task.isCancelled { wakeUp.signal() }
                    }
                }
            }
            timer?.cancel()
        }
    }

    private func carryOut(_ action: DeliveryQueue.Action, at endpoint: EndpointID, in group: inout DiscardingTaskGroup) {
        switch action {
        case .post(let batch):
            group.addTask {
                await self.post(batch, to: endpoint)
                self.wakeUp.signal()
            }
        case .expire(let ids):
            guard case .gorush = endpoint else {
                group.addTask { await self.drop(ids, endpoint.isPushService ? .notificationNotWebPushed : .notificationUnroutable) }
                break
            }
            let ended = table.withLock { table in
                ids.filter { id in table.index[id].flatMap { sources[$0.device.protocol] }?.othersChooseExpiry == true }
            }
            let lost = Array(Set(ids).subtracting(ended))
            if !ended.isEmpty { group.addTask { await self.drop(ended, .notificationMessageEnded) } }
            if !lost.isEmpty { group.addTask { await self.drop(lost, .notificationExpired) } }
        case .evict(let ids):
            group.addTask { await self.drop(ids, endpoint.isPushService ? .notificationNotWebPushed : .notificationEvicted) }
        }
    }

    /// Gives notifications up: removes them from the outbox and reports them as failed.
    func drop(_ ids: [Int64], _ counter: Counter) async {
        counters.add(counter, ids.count)
        // A full outbox may expire at once.
        for ids in ids.chunks(of: DeliveryStorage.dropLimit).map(Array.init) {
            guard await keep(DeliveryStorage.drop(ids, of: sources, at: now()), "given up notifications not removed") != nil else { return }
            notifyWaiters(table.withLock { table in ids.flatMap { table.end($0, as: .failed) } })
        }
    }

    /// Commits, retrying every second until it succeeds, so that outcomes are reported only once they are stored.
    ///
    /// - Parameter fallback: returned if the command meets damaged rows; nil: it is retried then, too.
    /// - Returns: nil if the node stops before. Then nothing may be reported.
    @discardableResult
    func keep<Outcome>(
        _ command: StoreCommand<Outcome>, _ complaint: String, ifDamaged fallback: Outcome? = nil
    ) async -> Outcome? {
        var isFirst = true
        while true {
            do throws(StoreError) {
                return try await store.commit(command)
            } catch {
                if isFirst { errors.log(complaint, reason: error.message) }
                isFirst = false
                if error.code == .damaged, let fallback { return fallback }
                guard (try? await Task.sleep(for: .seconds(1))) != nil else { return nil }
            }
        }
    }

    // MARK: Stopping

    /// Stops posting; notifications in the outbox stay there.
    package func stopPosting() {
        table.withLock { $0.drain() }
    }

    /// Whether a post is still in flight after ``stopPosting()``.
    package var isPosting: Bool { table.withLock { !$0.isDrained } }

    // MARK: Figures

    /// The number of notifications in unanswered posts.
    package var unansweredCount: Int { table.withLock { $0.unansweredCount } }

    /// The number of requests that wait for deliveries.
    package var awaitingCount: Int { table.withLock { $0.awaitingCount } }

    /// The push services with deliveries; nil when the node does not post to them.
    package var webPushFigures: WebPushFigures? {
        guard webPush != nil else { return nil }
        let now = steadyNow
        return table.withLock { $0.origins.figures(now: now) }
    }

    /// Whether there is a gorush.
    package var hasGorush: Bool { !routing.rules.allSatisfy(\.acceptsNothing) }

    /// The state of each gorush, including the number of its waiting notifications.
    package var endpoints: [EndpointState] {
        let now = steadyNow
        var states = table.withLock { $0.states(routing.rules, now: now) }
        for index in states.indices { states[index].certificateEnd = gorush[index].posting.certificateEnd }
        return zip(routing.rules, states).filter { !$0.0.acceptsNothing }.map(\.1)
    }

    /// The breaker of the endpoint in the worst state.
    package var breaker: CircuitBreaker { endpoints.map(\.breaker).max { $0.severity < $1.severity } ?? CircuitBreaker() }

    package var waitingCount: Int { table.withLock { $0.count } }

    /// How long the oldest waiting notification, without those for push services of Web Push, has been in the outbox; nil when none waits. Where
    /// nodes share the outbox and no post of it was tried, since this node took it up.
    package var oldestAge: Duration? {
        let now = steadyNow
        return table.withLock { $0.oldestAge(at: now) }
    }

    /// The number of waiting notifications that this node has no endpoint for, or whose protocol it does not serve.
    package var unroutableCount: Int { table.withLock { $0.unroutableCount } }
}
