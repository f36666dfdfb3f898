import NodeMetrics
import Core
import Waku

/// The queued deliveries of all endpoints and the requests that wait for them, as a value; ``DeliveryService`` holds it under one lock.
struct DeliveryTable {
    /// The number of deliveries kept ready to post; beyond it they are read from the outbox.
    private static let postableLimit = 1_024
    private static let elsewhereCapacity = 10_000
    private static let returnedCapacity = 10_000
    private static let knownCapacity = 200_000
    /// The number of deliveries of a device that are moved to another endpoint at a time.
    private static let moveLimit = 100

    struct Gorush {
        /// Independent of the queues of other endpoints.
        var queue: DeliveryQueue
        /// Why the last post failed.
        var failure = ""
        /// Whether it was slow at the last call of ``slownessChanges(now:)``.
        var isSlow = false
        /// Whether it has answered a post.
        var hasAnswered = false
        /// See ``EndpointState/healthFailure``.
        var healthFailure: String?
    }

    /// By the index in ``EndpointRouting/rules``.
    var gorushes: [Gorush]
    /// See ``EndpointID/unroutable``. It posts nothing.
    private var unroutable: DeliveryQueue
    var origins: OriginQueues
    private(set) var index = DeliveryIndex()
    /// Whether any delivery had a trace since the start.
    private var isTraced = false
    /// The times of the requests that enqueued deliveries since this process started.
    private var times: [Int64: MessageTimes] = [:]
    /// Deliveries that were just added to the outbox and will probably be posted next; they are read again only if their device has changed.
    private var postable: [Int64: QueuedDelivery] = [:]
    private var awaited = AwaitedDeliveryTable()
    /// See ``markRemote(_:)``. An entry is removed when a request waits for it.
    private var elsewhere = GenerationalCache<DeliveryID, Void>(capacity: Self.elsewhereCapacity)
    /// See ``returnToOutbox(_:)``.
    private var returned = GenerationalCache<Int64, Void>(capacity: Self.returnedCapacity)
    /// Recipients for which gorush has accepted a notification.
    private var known = GenerationalCache<PushRecipient, Void>(capacity: Self.knownCapacity)
    /// Subscriptions for which their push services accepted a message, and when they last did, by the queues' clock; the earliest time if another
    /// process posted it. Anybody can run a service that does, so they displace none of ``known``.
    private var knownSubscriptions = GenerationalCache<PushRecipient, Timestamp>(capacity: Self.knownCapacity)

    /// - Parameters:
    ///   - queues: one for each gorush.
    ///   - webPush: for the queues of push services.
    init(_ queues: [DeliveryQueue], webPush: OriginQueues.Configuration = OriginQueues.Configuration()) {
        gorushes = queues.map { Gorush(queue: $0) }
        origins = OriginQueues(webPush)
        unroutable = DeliveryQueue(configuration: webPush.queue)
        unroutable.drain()
    }

    // MARK: Endpoints

    /// The queue of an endpoint. A push service has one while ``DeliveryIndex`` refers to it, and until its posts have ended.
    private subscript(endpoint: EndpointID) -> DeliveryQueue {
        _read {
            switch endpoint {
            case .gorush(let index): yield gorushes[index].queue
            case .webPush(let origin): yield origins[origin]
            case .unroutable: yield unroutable
            }
        }
        _modify {
            switch endpoint {
            case .gorush(let index): yield &gorushes[index].queue
            case .webPush(let origin): yield &origins[origin]
            case .unroutable: yield &unroutable
            }
        }
    }

    /// The endpoints whose queues are looked at in every step.
    private var permanentEndpoints: [EndpointID] { gorushes.indices.map(EndpointID.gorush) + [.unroutable] }
    private var endpoints: [EndpointID] { permanentEndpoints + origins.services.keys.map(EndpointID.webPush) }
    private var queues: some Sequence<DeliveryQueue> { endpoints.lazy.map { self[$0] } }

    /// Records that a queue may have something to do.
    private mutating func queueChanged(_ endpoint: EndpointID) {
        if case .webPush(let origin) = endpoint { origins.queueChanged(origin) }
    }

    /// Whether nothing is posted now: no endpoint takes the deliveries, the breaker is open, or the push service is paused.
    private func isUnavailable(_ endpoint: EndpointID, at now: Timestamp) -> Bool {
        switch endpoint {
        case .gorush(let index): gorushes[index].queue.breaker.isOpen(at: now)
        case .webPush(let origin): origins.services[origin]?.isUnavailable(at: now) ?? false
        case .unroutable: true
        }
    }

    // MARK: Arrivals

    struct Arrival {
        let waiting: WaitingDelivery
        /// nil: it is read from the outbox when it is posted.
        var queued: QueuedDelivery?
        /// A guess for a device that could not be read: if it has deliveries, they are at its endpoint.
        let endpoint: EndpointID
        /// nil if the address of the device is unknown.
        var recipient: PushRecipient?
        /// Set when a post by an earlier run or another node has an unknown outcome: the delivery is not posted again before this time, by the
        /// queue's clock, unless a repetition replaces the first on the device.
        var heldUntil: Timestamp?
        /// Whether it was in the outbox before this process or node had to post it. It displaces no other from a full queue, so the queue may have more
        /// than its limit.
        var isInherited = false
    }

    /// - Parameters:
    ///   - clock: the system time, by which deliveries expire. It may have been set since the start, unlike the queue's time.
    ///   - isAwaited: whether a request waits for them.
    mutating func add(_ arrivals: some Sequence<Arrival>, isAwaited: Bool, clock: Timestamp, now: Timestamp) {
        for arrival in arrivals {
            let waiting = arrival.waiting
            let device = waiting.device
            if let id = index.ids[waiting.delivery] {
                // A later row of the same delivery: the device was removed and has registered again, and the request was repeated.
                guard id < waiting.id, !isInFlight(id) else { continue }
                forget(id)
            }
            let current = arrival.recipient == nil ? index.devices[device]?.endpoint : nil
            let endpoint = current ?? arrival.endpoint
            index.insert(
                waiting.id,
                DeliveryIndex.Entry(
                    delivery: waiting.delivery, device: device, endpoint: endpoint,
                    since: now - max(.zero, waiting.markedAt.map { clock.since($0) } ?? .zero), heldUntil: arrival.heldUntil,
                    trace: arrival.queued?.trace))
            if case .webPush(let origin) = endpoint { origins.add(origin, now: now) }
            if let recipient = arrival.recipient { moveFromFormer(device, recipient, now: now) }
            if arrival.queued?.trace != nil { isTraced = true }
            times[waiting.id] = arrival.queued?.times
            if endpoint != .unroutable, postable.count < Self.postableLimit { postable[waiting.id] = arrival.queued }
            let isInherited = arrival.isInherited || returned.contains(waiting.id)
            returned.remove(waiting.id)
            let former = origins.waitingCount
            self[endpoint].add(
                waiting.id, device: device, recipient: arrival.recipient, isKnown: isKnown(arrival.recipient, at: endpoint),
                lastAccepted: lastAccepted(arrival.recipient, at: endpoint), expires: now + waiting.expires.since(clock),
                isAwaited: isAwaited, group: arrival.queued?.group, isInherited: isInherited, now: now)
            queueChanged(endpoint)
            if !isInherited { origins.evict(beyond: former) }
        }
    }

    private func isInFlight(_ id: Int64) -> Bool { index[id].map { self[$0.endpoint].isInFlight(id) } ?? false }

    /// Moves the waiting deliveries of a device from former endpoints, which may be paused for long, before its later ones. Many are moved in parts, the
    /// oldest first, as those before are posted: a device may have thousands, and move often.
    private mutating func moveFromFormer(_ device: DeviceID, _ recipient: PushRecipient? = nil, now: Timestamp) {
        guard let former = index.devices[device]?.former, !former.isEmpty, let endpoint = index.devices[device]?.endpoint else { return }
        let isKnown = isKnown(recipient, at: endpoint)
        let formerCount = origins.waitingCount
        var room = Self.moveLimit
        let waiting = former.filter { hasQueue($0) }.map { ($0, self[$0].oldestWaiting(of: device) ?? .max) }
        for (former, _) in waiting.sorted(by: { $0.1 < $1.1 }) {
            let moved = self[former].takeWaiting(of: device, limit: room)
            room -= moved.count
            for (id, expires) in moved {
                index.move(id, to: endpoint)
                self[endpoint].add(id, device: device, recipient: recipient, isKnown: isKnown, expires: expires, isAwaited: false, now: now)
            }
            queueChanged(former)
        }
        let done = former.filter { !hasQueue($0) || self[$0].lines[device] == nil }
        index.removeFormer(done, of: device)
        queueChanged(endpoint)
        origins.evict(beyond: formerCount)
    }

    private func hasQueue(_ endpoint: EndpointID) -> Bool {
        if case .webPush(let origin) = endpoint { origins.services[origin] != nil } else { true }
    }

    /// The result of ``await(_:deadline:now:)``.
    enum Waiting {
        /// The request waits. The unknown deliveries are in no queue and not known to be posted by another node: look them up.
        case waits(unknown: [DeliveryID])
        /// Every endpoint concerned is unavailable.
        case refused(AwaitedDeliveryTable.Completed)
    }

    mutating func await(_ awaited: AwaitedDeliveries, deadline: Timestamp, now: Timestamp) -> Waiting {
        var outcomes: [DeliveryID: DeliveryOutcome] = [:]
        var unknown: [DeliveryID] = []
        for delivery in awaited.deliveries {
            guard let endpoint = index.endpoint(of: delivery) else {
                if elsewhere.contains(delivery) { elsewhere.remove(delivery) } else { unknown.append(delivery) }
                continue
            }
            if isUnavailable(endpoint, at: now) { outcomes[delivery] = .failed }
        }
        guard outcomes.count < awaited.deliveries.count else {
            return .refused(AwaitedDeliveryTable.Completed(awaited: awaited, outcomes: outcomes, isImmediate: true))
        }
        self.awaited.add(awaited, known: outcomes, deadline: deadline)
        return .waits(unknown: unknown)
    }

    // MARK: Time

    struct Step {
        var actions: [(endpoint: EndpointID, action: DeliveryQueue.Action)] = []
        var completed: [AwaitedDeliveryTable.Completed]
        /// The time of the next step; nil for none.
        var next: Timestamp?
    }

    mutating func step(now: Timestamp) -> Step {
        var step = Step(completed: awaited.end(before: now))
        for endpoint in permanentEndpoints {
            step.actions += self[endpoint].actions(now: now).map { (endpoint, $0) }
            step.next = [step.next, self[endpoint].nextWake(now: now)].compactMap(\.self).min()
        }
        step.actions += origins.actions(now: now, isNeeded: index.refers(to:))
        step.next = [step.next, awaited.nextDeadline, origins.nextWake].compactMap(\.self).min()
        return step
    }

    /// Each gorush that became slow, or stopped being slow, since the last call.
    mutating func slownessChanges(now: Timestamp) -> [(gorush: Int, slowness: DeliveryQueue.Slowness?)] {
        gorushes.indices.compactMap { index in
            let slowness = gorushes[index].queue.slowness(at: now)
            guard gorushes[index].isSlow != (slowness != nil) else { return nil }
            gorushes[index].isSlow = slowness != nil
            return (index, slowness)
        }
    }

    var isAnySlow: Bool { gorushes.contains(where: \.isSlow) }

    // MARK: Health checks

    func hasAnsweredPost(_ gorush: Int) -> Bool { gorushes[gorush].hasAnswered }

    /// - Parameter reason: nil when it has answered its health check.
    mutating func setHealthFailure(_ reason: String?, of gorush: Int) {
        gorushes[gorush].healthFailure = gorushes[gorush].hasAnswered ? nil : reason
    }

    /// Whether a probe may go out to a gorush, and there is nothing to post: only a health check shows that it works again.
    func isUnprobed(_ gorush: Int, now: Timestamp) -> Bool {
        gorushes[gorush].queue.count == 0 && gorushes[gorush].queue.breaker.admission(at: now) == .probe
    }

    /// Records a health check of an unprobed gorush.
    ///
    /// - Parameter reason: nil when it has answered.
    /// - Returns: whether that closed the circuit breaker.
    mutating func checkedHealth(of gorush: Int, failure reason: String?, now: Timestamp) -> Bool {
        guard isUnprobed(gorush, now: now) else { return false }
        gorushes[gorush].healthFailure = reason
        guard reason == nil else { return false }
        gorushes[gorush].queue.breaker.worked()
        return true
    }

    // MARK: Posts

    /// See ``Arrival/heldUntil``; deliveries that are not held are left out.
    func heldUntil(_ ids: some Sequence<Int64>) -> [Int64: Timestamp] {
        ids.reduce(into: [:]) { $0[$1] = index[$1]?.heldUntil }
    }

    /// Returns deliveries of a batch to the queue until the given times.
    mutating func postpone(_ due: [Int64: Timestamp], of batch: DeliveryQueue.Batch, at endpoint: EndpointID) {
        self[endpoint].postpone(due, of: batch.id)
        queueChanged(endpoint)
    }

    /// Removes and returns the deliveries of a batch that need not be read from the outbox, provided that their devices have not changed.
    mutating func takePostable(of batch: DeliveryQueue.Batch) -> [Int64: QueuedDelivery] {
        batch.deliveries.reduce(into: [:]) { $0[$1] = postable.removeValue(forKey: $1) }
    }

    /// - Returns: the trace that the post belongs to; of those of its deliveries, the first that is sampled.
    mutating func sent(_ batch: DeliveryQueue.Batch, count: Int, by endpoint: EndpointID, now: Timestamp) -> TraceContext? {
        self[endpoint].sent(batch.id, count: count, now: now)
        guard isTraced else { return nil }
        let traces = batch.deliveries.compactMap { index[$0]?.trace }
        for trace in traces { trace.mark(.queued) }
        return (traces.first { $0.context.isSampled } ?? traces.first)?.postContext
    }

    /// Returns whether the endpoint was slow, in which case the answer may let other posts go out.
    mutating func answered(_ batch: DeliveryQueue.Batch, _ outcome: PostOutcome, by endpoint: EndpointID, now: Timestamp) -> Bool {
        switch (endpoint, outcome) {
        case (.gorush(let index), .accepted), (.gorush(let index), .refused):
            gorushes[index].hasAnswered = true
            gorushes[index].healthFailure = nil
        default: break
        }
        let isSlow = self[endpoint].slowness(at: now) != nil
        self[endpoint].answered(batch.id, outcome: outcome, now: now)
        queueChanged(endpoint)
        return isSlow
    }

    mutating func failed(_ reason: String, at gorush: Int) {
        gorushes[gorush].failure = reason
    }

    enum BreakerChange {
        case opened, closed
    }

    struct Finished {
        var accepted: [MessageTimes?] = []
        var refused: [Int64] = []
        var retriedCount = 0
        var completed: [AwaitedDeliveryTable.Completed] = []
        var breakerChange: BreakerChange?
        /// Why the last post of a gorush failed.
        var failure = ""
    }

    /// - Parameters:
    ///   - notAccepted: deliveries that gorush had no room for, though it accepted the post.
    ///   - ended: accepted deliveries whose devices were unregistered because gorush called their tokens dead.
    mutating func finished(
        _ batch: DeliveryQueue.Batch, _ outcome: PostOutcome, by endpoint: EndpointID, except notAccepted: Set<Int64> = [],
        ended: Set<DeliveryID> = [], now: Timestamp
    ) -> Finished {
        var finished = Finished()
        let before = self[endpoint].breaker
        let devices = batch.deliveries.compactMap { index[$0]?.device }
        for resolution in self[endpoint].finished(batch.id, outcome: outcome, except: notAccepted, now: now) {
            switch resolution {
            case .accepted(let id):
                finished.accepted.append(times[id])
                if isTraced { index[id]?.trace?.mark(.posted) }
                let isEnded = delivery(id).map(ended.contains) ?? false
                finished.completed += end(id, as: isEnded ? .ended : .accepted)
            case .dropped(let id): finished.refused.append(id)
            case .retrying: finished.retriedCount += 1
            }
        }
        for device in devices { moveFromFormer(device, now: now) }
        queueChanged(endpoint)
        let after = self[endpoint].breaker
        if isUnavailable(endpoint, at: now) { finished.completed += failAwaited(at: endpoint) }
        if case .gorush(let index) = endpoint { finished.failure = gorushes[index].failure }
        switch (before.isClosed, after.isClosed) {
        case (true, false): finished.breakerChange = .opened
        case (false, true): finished.breakerChange = .closed
        default: break
        }
        return finished
    }

    /// Those of every gorush.
    var areAllBreakersClosed: Bool { gorushes.allSatisfy(\.queue.breaker.isClosed) }

    /// The breaker is open, so deliveries that are not posted yet are reported as failed. Deliveries in flight may still be accepted in time:
    /// requests wait for them until their deadline.
    private mutating func failAwaited(at endpoint: EndpointID) -> [AwaitedDeliveryTable.Completed] {
        let unanswered = Set(self[endpoint].deliveriesInFlight.compactMap { index[$0]?.delivery })
        var completed: [AwaitedDeliveryTable.Completed] = []
        // The queue of a push service is mostly shorter than the list of deliveries that requests wait for.
        let own =
            endpoint.isPushService
            ? self[endpoint].deliveries.keys.compactMap { index[$0]?.delivery }
            : awaited.deliveries.filter { index.endpoint(of: $0) == endpoint }
        for delivery in own where !unanswered.contains(delivery) { completed += awaited.resolve(delivery, as: .failed) }
        return completed
    }

    // MARK: Standing

    /// Records recipients for which gorush accepted a notification. Their places in a full outbox are kept before those of others.
    mutating func becameKnown(_ recipients: some Sequence<PushRecipient>) {
        for recipient in recipients where known.refreshedValue(of: recipient) == nil {
            known.set((), of: recipient)
            for index in gorushes.indices { gorushes[index].queue.becameKnown(recipient) }
        }
    }

    /// Records subscriptions for which their push services accepted a message: posts for them need not wait for those of strangers at the service.
    ///
    /// - Parameter time: when they did; nil if that is unknown.
    mutating func becameKnown(
        _ subscriptions: some Sequence<(recipient: PushRecipient, origin: WebPushOrigin)>, at time: Timestamp? = nil
    ) {
        for (recipient, origin) in subscriptions {
            let isNew = knownSubscriptions.refreshedValue(of: recipient) == nil
            if isNew || time != nil { knownSubscriptions.set(time ?? Timestamp(rawValue: .min), of: recipient) }
            if isNew { origins.becameKnown(recipient, at: origin) }
        }
    }

    private func lastAccepted(_ recipient: PushRecipient?, at endpoint: EndpointID) -> Timestamp? {
        endpoint.isPushService ? recipient.flatMap { knownSubscriptions.value(of: $0) } : nil
    }

    private func isKnown(_ recipient: PushRecipient?, at endpoint: EndpointID) -> Bool {
        guard let recipient else { return false }
        return endpoint.isPushService ? knownSubscriptions.contains(recipient) : known.contains(recipient)
    }

    var knownCount: Int { known.count }

    // MARK: Ends

    func delivery(_ id: Int64) -> DeliveryID? { index[id]?.delivery }

    /// Reports the outcome of a delivery that is in no queue.
    mutating func resolve(_ delivery: DeliveryID, as outcome: DeliveryOutcome) -> [AwaitedDeliveryTable.Completed] {
        awaited.resolve(delivery, as: outcome)
    }

    /// Removes a delivery from its queue and reports its outcome. Returns the requests that it completes.
    mutating func end(_ id: Int64, as outcome: DeliveryOutcome) -> [AwaitedDeliveryTable.Completed] {
        if isTraced, outcome == .failed { index[id]?.trace?.fail("notification given up") }
        return forget(id).map { awaited.resolve($0, as: outcome) } ?? []
    }

    /// Removes a delivery from its queue without an outcome; requests keep waiting for it.
    @discardableResult
    mutating func forget(_ id: Int64) -> DeliveryID? {
        postable[id] = nil
        times[id] = nil
        guard let (entry, deviceEndpoint) = index.remove(id) else { return nil }
        self[entry.endpoint].remove(id)
        queueChanged(entry.endpoint)
        // A push service that nothing refers to any more is gone after the next step.
        if let deviceEndpoint, deviceEndpoint != entry.endpoint { queueChanged(deviceEndpoint) }
        return entry.delivery
    }

    /// Removes a delivery that could not be marked. When the outbox is scanned next, and it is still one of this node's, it does not count as new.
    mutating func returnToOutbox(_ id: Int64) {
        if forget(id) != nil { returned.set((), of: id) }
    }

    /// Removes deliveries from the queue of an endpoint; requests may still wait for them.
    mutating func remove(_ ids: [Int64], from endpoint: EndpointID) {
        for id in ids { self[endpoint].remove(id) }
        queueChanged(endpoint)
    }

    // MARK: Other nodes

    /// Removes the deliveries of these devices, except those in flight; requests keep waiting for them.
    mutating func leave(_ devices: (DeviceID) -> Bool) {
        let inFlight = Set(queues.flatMap(\.deliveriesInFlight))
        for (id, entry) in index.entries where !inFlight.contains(id) && devices(entry.device) && self[entry.endpoint].contains(id) {
            forget(id)
        }
    }

    func isPosting(for devices: (DeviceID) -> Bool) -> Bool {
        queues.contains { $0.devicesInFlight.contains(where: devices) }
    }

    /// Records deliveries just added to the outbox for devices of other nodes, so that the first request that waits for one does not look it up.
    mutating func markRemote(_ deliveries: [DeliveryID]) {
        for delivery in deliveries { elsewhere.set((), of: delivery) }
    }

    /// The deliveries that requests wait for and that are in no queue.
    var awaitedElsewhere: [DeliveryID] { awaited.deliveries.filter { index.ids[$0] == nil } }

    // MARK: The operator

    /// - Parameter ids: nil for all. Returns the ids that are in a queue.
    func waiting(_ ids: [Int64]?) -> [Int64] {
        ids.map { $0.filter { index[$0] != nil } } ?? Array(index.entries.keys)
    }

    /// - Parameter ids: nil for all that wait. Returns those of these deliveries that are not in flight.
    mutating func hasten(_ ids: [Int64]?, now: Timestamp) -> [Int64] {
        endpoints.flatMap { endpoint in
            defer { queueChanged(endpoint) }
            return self[endpoint].hasten(ids, now: now)
        }
    }

    /// Starts no new posts.
    mutating func drain() {
        for index in gorushes.indices { gorushes[index].queue.drain() }
        origins.drain()
    }

    /// Whether all posts have ended after ``drain()``.
    var isDrained: Bool { queues.allSatisfy(\.isDrained) }

    // MARK: Figures

    var count: Int { index.entries.count }
    /// The age of the delivery that has waited longest for a gorush, or for an endpoint; nil when none does. Web Push does not count: anybody may
    /// register a push service that does not answer.
    func oldestAge(at now: Timestamp) -> Duration? {
        index.entries.values.lazy.filter { !$0.endpoint.isPushService }.map(\.since).min().map { max(.zero, now.since($0)) }
    }
    var unroutableCount: Int { unroutable.count }
    var awaitingCount: Int { awaited.count }
    /// The number of notifications in unanswered posts.
    var unansweredCount: Int { queues.reduce(0) { $0 + $1.deliveriesInFlight.count(where: { _ in true }) } }

    func states(_ rules: [EndpointRule], now: Timestamp) -> [EndpointState] {
        zip(rules, gorushes).map { rule, gorush in
            EndpointState(
                name: rule.name, breaker: gorush.queue.breaker, isOpen: gorush.queue.breaker.isOpen(at: now),
                slowness: gorush.queue.slowness(at: now), unanswered: gorush.queue.unanswered(at: now),
                batchLimit: gorush.queue.batchLimit(at: now), waitingCount: gorush.queue.count, failure: gorush.failure,
                healthFailure: gorush.healthFailure)
        }
    }
}
