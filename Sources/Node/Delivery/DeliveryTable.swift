import NodeMetrics
import Core
import Waku

/// The queued deliveries of all endpoints and the requests that wait for them, as a value; ``DeliveryService`` holds it under one lock.
struct DeliveryTable {
    /// The number of deliveries kept ready to post; beyond it they are read from the outbox.
    private static let postableLimit = 1_024
    private static let elsewhereCapacity = 10_000
    private static let knownCapacity = 200_000
    /// The number of deliveries of a device that are moved to another endpoint at a time.
    private static let moveLimit = 100

    struct Queued {
        let delivery: DeliveryID
        let device: DeviceID
        /// The index of its endpoint.
        var endpoint: Int
        /// When it was put into the outbox, by the queue's clock; if that is not known, when it was queued.
        let since: Timestamp
        /// See ``Arrival/heldUntil``.
        let heldUntil: Timestamp?
        /// See ``QueuedDelivery/trace``.
        let trace: MessageTrace?
    }

    struct Endpoint {
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
        /// false for the entry of deliveries that no endpoint takes.
        var canPost = true
        /// For a push service: see `DeliveryTable+Origins.swift`. nil for a gorush, and for a place that is free.
        var origin: Origin?
        /// The number of deliveries in ``DeliveryTable/deliveries``, and of devices that it takes deliveries for.
        var referenceCount = 0
    }

    private struct Device {
        /// The index of the endpoint that takes its deliveries.
        var endpoint: Int
        /// The number of its deliveries in ``DeliveryTable/deliveries``.
        var count = 0
    }

    /// Each gorush, the entry of deliveries that no endpoint takes, then an entry for each push service with deliveries.
    var endpoints: [Endpoint]
    let gorushCount: Int
    /// Its queue posts nothing. A delivery stays until it expires, its device registers for something that is served, or another node owns the device.
    var unroutableIndex: Int { gorushCount }
    var origins: Origins
    private var isDraining = false
    /// Whether any delivery had a trace since the start.
    private var isTraced = false
    /// The queued deliveries by their outbox ids, and these by the delivery ids.
    var deliveries: [Int64: Queued] = [:]
    private var ids: [DeliveryID: Int64] = [:]
    /// The devices with queued deliveries.
    private var devices: [DeviceID: Device] = [:]
    /// For each device that has moved to another endpoint while deliveries wait at former ones or are in flight there: those endpoints.
    private var formerEndpoints: [DeviceID: [Int]] = [:]
    /// The times of the requests that enqueued deliveries since this process started.
    private var times: [Int64: MessageTimes] = [:]
    /// Deliveries that were just added to the outbox and will probably be posted next; they are read again only if their device has changed.
    private var postable: [Int64: QueuedDelivery] = [:]
    private var awaited = AwaitedDeliveryTable()
    /// See ``markRemote(_:)``. An entry is removed when a request waits for it.
    private var elsewhere = GenerationalCache<DeliveryID, Void>(capacity: Self.elsewhereCapacity)
    /// Recipients for which gorush has accepted a notification.
    private var known = GenerationalCache<PushRecipient, Void>(capacity: Self.knownCapacity)

    /// - Parameters:
    ///   - queues: one for each gorush.
    ///   - webPush: for the queues of push services.
    init(_ queues: [DeliveryQueue], webPush: Origins.Configuration = Origins.Configuration()) {
        endpoints = queues.map { Endpoint(queue: $0) }
        gorushCount = queues.count
        origins = Origins(webPush)
        var unroutable = Endpoint(queue: DeliveryQueue(configuration: webPush.queue))
        unroutable.canPost = false
        unroutable.queue.drain()
        endpoints.append(unroutable)
    }

    // MARK: Arrivals

    struct Arrival {
        let waiting: WaitingDelivery
        /// nil: it is read from the outbox when it is posted.
        var queued: QueuedDelivery?
        /// nil when no endpoint of this node takes it, or the node does not serve its protocol.
        let destination: Destination?
        /// nil if the address of the device is unknown.
        var recipient: PushRecipient?
        /// Set when a post by an earlier run or another node has an unknown outcome: the delivery is not posted again before this time, by the
        /// queue's clock, unless a repetition replaces the first on the device.
        var heldUntil: Timestamp?
    }

    /// - Parameters:
    ///   - clock: the system time, by which deliveries expire. It may have been set since the start, unlike the queue's time.
    ///   - isAwaited: whether a request waits for them.
    mutating func add(_ arrivals: some Sequence<Arrival>, isAwaited: Bool, clock: Timestamp, now: Timestamp) {
        for arrival in arrivals {
            let waiting = arrival.waiting
            if let id = ids[waiting.delivery] {
                // A later row of the same delivery: the device was removed and has registered again, and the request was repeated.
                guard id < waiting.id, !isInFlight(id) else { continue }
                forget(id)
            }
            let endpoint = endpoint(for: arrival, now: now)
            let isKnown = arrival.recipient.map { known.contains($0) } ?? false
            ids[waiting.delivery] = waiting.id
            devices[waiting.device]?.count += 1
            endpoints[endpoint].referenceCount += 1
            deliveries[waiting.id] = Queued(
                delivery: waiting.delivery, device: waiting.device, endpoint: endpoint,
                since: now - max(.zero, waiting.markedAt.map { clock.since($0) } ?? .zero), heldUntil: arrival.heldUntil,
                trace: arrival.queued?.trace)
            if arrival.queued?.trace != nil { isTraced = true }
            times[waiting.id] = arrival.queued?.times
            if endpoint != unroutableIndex, postable.count < Self.postableLimit { postable[waiting.id] = arrival.queued }
            endpoints[endpoint].queue.add(
                waiting.id, device: waiting.device, recipient: arrival.recipient, isKnown: isKnown,
                expires: now + waiting.expires.since(clock),
                isAwaited: isAwaited, group: arrival.queued?.group, now: now)
            changed(endpoint)
        }
        evictBeyondLimit()
    }

    private func endpoint(of delivery: DeliveryID) -> Int? { ids[delivery].flatMap { deliveries[$0]?.endpoint } }

    private func isInFlight(_ id: Int64) -> Bool {
        deliveries[id].map { endpoints[$0.endpoint].queue.isInFlight(id) } ?? false
    }

    /// The endpoint for a delivery. If its device has moved there, its earlier deliveries are moved first.
    private mutating func endpoint(for arrival: Arrival, now: Timestamp) -> Int {
        let device = arrival.waiting.device
        let former = devices[device]?.endpoint
        // The destination of a device that could not be read is a guess.
        if arrival.recipient == nil, let former { return former }
        let endpoint = index(of: arrival.destination, now: now)
        if former != endpoint {
            devices[device] = Device(endpoint: endpoint, count: devices[device]?.count ?? 0)
            endpoints[endpoint].referenceCount += 1
            if let former {
                endpoints[former].referenceCount -= 1
                formerEndpoints[device] = (formerEndpoints[device] ?? []).filter { $0 != endpoint } + [former]
            }
        }
        moveFromFormer(device, arrival.recipient, now: now)
        return endpoint
    }

    /// Moves what a device has waiting at former endpoints, which may be paused for long, before its later deliveries. Many are moved in parts, the
    /// oldest first, as those before are posted: a device may have thousands, and move often.
    private mutating func moveFromFormer(_ device: DeviceID, _ recipient: PushRecipient? = nil, now: Timestamp) {
        guard var former = formerEndpoints[device], let endpoint = devices[device]?.endpoint else { return }
        let isKnown = recipient.map { known.contains($0) } ?? false
        var room = Self.moveLimit
        let oldest = former.map { ($0, endpoints[$0].queue.oldestWaiting(of: device) ?? .max) }.sorted { $0.1 < $1.1 }
        for (index, _) in oldest {
            let moved = endpoints[index].queue.takeWaiting(of: device, limit: room)
            room -= moved.count
            for (id, expires) in moved {
                deliveries[id]?.endpoint = endpoint
                endpoints[index].referenceCount -= 1
                endpoints[endpoint].referenceCount += 1
                endpoints[endpoint].queue.add(
                    id, device: device, recipient: recipient, isKnown: isKnown, expires: expires, isAwaited: false, now: now)
            }
            changed(index)
        }
        former.removeAll { endpoints[$0].queue.lines[device] == nil }
        formerEndpoints[device] = former.isEmpty ? nil : former
        changed(endpoint)
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
            guard let endpoint = endpoint(of: delivery) else {
                if elsewhere.contains(delivery) { elsewhere.remove(delivery) } else { unknown.append(delivery) }
                continue
            }
            if endpoints[endpoint].isUnavailable(at: now) { outcomes[delivery] = .failed }
        }
        guard outcomes.count < awaited.deliveries.count else {
            return .refused(AwaitedDeliveryTable.Completed(awaited: awaited, outcomes: outcomes, isImmediate: true))
        }
        self.awaited.add(awaited, known: outcomes, deadline: deadline)
        return .waits(unknown: unknown)
    }

    // MARK: Time

    struct Step {
        var actions: [(endpoint: Int, action: DeliveryQueue.Action)] = []
        var completed: [AwaitedDeliveryTable.Completed]
        /// The time of the next step; nil for none.
        var next: Timestamp?
    }

    mutating func step(now: Timestamp) -> Step {
        var step = Step(completed: awaited.end(before: now))
        for index in 0...unroutableIndex {
            step.actions += endpoints[index].queue.actions(now: now).map { (index, $0) }
            step.next = [step.next, endpoints[index].queue.nextWake(now: now)].compactMap(\.self).min()
        }
        step.actions += originActions(now: now)
        step.next = [step.next, awaited.nextDeadline, origins.nextWake].compactMap(\.self).min()
        return step
    }

    /// Each gorush that became slow, or stopped being slow, since the last call.
    mutating func slownessChanges(now: Timestamp) -> [(endpoint: Int, slowness: DeliveryQueue.Slowness?)] {
        (0..<gorushCount).compactMap { index in
            let slowness = endpoints[index].queue.slowness(at: now)
            guard endpoints[index].isSlow != (slowness != nil) else { return nil }
            endpoints[index].isSlow = slowness != nil
            return (index, slowness)
        }
    }

    var isAnySlow: Bool { endpoints[..<gorushCount].contains(where: \.isSlow) }

    // MARK: Health checks

    func hasAnsweredPost(_ endpoint: Int) -> Bool { endpoints[endpoint].hasAnswered }

    /// - Parameter reason: nil when it has answered its health check.
    mutating func setHealthFailure(_ reason: String?, of endpoint: Int) {
        endpoints[endpoint].healthFailure = endpoints[endpoint].hasAnswered ? nil : reason
    }

    /// Whether a probe may go out to an endpoint, and there is nothing to post: only a health check shows that the endpoint works again.
    func isUnprobed(_ endpoint: Int, now: Timestamp) -> Bool {
        endpoints[endpoint].queue.count == 0 && endpoints[endpoint].queue.breaker.admission(at: now) == .probe
    }

    /// Records a health check of an unprobed endpoint.
    ///
    /// - Parameter reason: nil when it has answered.
    /// - Returns: whether that closed the circuit breaker.
    mutating func checkedHealth(of endpoint: Int, failure reason: String?, now: Timestamp) -> Bool {
        guard isUnprobed(endpoint, now: now) else { return false }
        endpoints[endpoint].healthFailure = reason
        guard reason == nil else { return false }
        endpoints[endpoint].queue.breaker.worked()
        return true
    }

    // MARK: Posts

    /// See ``Arrival/heldUntil``; deliveries that are not held are left out.
    func heldUntil(_ ids: some Sequence<Int64>) -> [Int64: Timestamp] {
        ids.reduce(into: [:]) { $0[$1] = deliveries[$1]?.heldUntil }
    }

    /// Returns deliveries of a batch to the queue until the given times.
    mutating func postpone(_ due: [Int64: Timestamp], of batch: DeliveryQueue.Batch, at endpoint: Int) {
        endpoints[endpoint].queue.postpone(due, of: batch.id)
        changed(endpoint)
    }

    /// Removes and returns the deliveries of a batch that need not be read from the outbox, provided that their devices have not changed.
    mutating func takePostable(of batch: DeliveryQueue.Batch) -> [Int64: QueuedDelivery] {
        batch.deliveries.reduce(into: [:]) { $0[$1] = postable.removeValue(forKey: $1) }
    }

    /// - Returns: the trace that the post belongs to; of those of its deliveries, the first that is sampled.
    mutating func sent(_ batch: DeliveryQueue.Batch, count: Int, by endpoint: Int, now: Timestamp) -> TraceContext? {
        endpoints[endpoint].queue.sent(batch.id, count: count, now: now)
        guard isTraced else { return nil }
        let traces = batch.deliveries.compactMap { deliveries[$0]?.trace }
        for trace in traces { trace.mark(.queued) }
        return (traces.first { $0.context.isSampled } ?? traces.first)?.postContext
    }

    /// Returns whether the endpoint was slow, in which case the answer may let other posts go out.
    mutating func answered(_ batch: DeliveryQueue.Batch, _ outcome: PostOutcome, by endpoint: Int, now: Timestamp) -> Bool {
        switch outcome {
        case .accepted, .refused:
            endpoints[endpoint].hasAnswered = true
            endpoints[endpoint].healthFailure = nil
        case .failed, .unclear, .notPosted: break
        }
        defer {
            endpoints[endpoint].queue.answered(batch.id, outcome: outcome, now: now)
            changed(endpoint)
        }
        return endpoints[endpoint].queue.slowness(at: now) != nil
    }

    mutating func failed(_ reason: String, at endpoint: Int) {
        endpoints[endpoint].failure = reason
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
        /// Why the endpoint's last post failed.
        var failure = ""
    }

    /// - Parameters:
    ///   - notAccepted: deliveries that gorush had no room for, though it accepted the post.
    ///   - ended: accepted deliveries whose devices were unregistered because gorush called their tokens dead.
    mutating func finished(
        _ batch: DeliveryQueue.Batch, _ outcome: PostOutcome, by endpoint: Int, except notAccepted: Set<Int64> = [],
        ended: Set<DeliveryID> = [], now: Timestamp
    ) -> Finished {
        var finished = Finished()
        let before = endpoints[endpoint].queue.breaker
        let moved = formerEndpoints.isEmpty ? [] : batch.deliveries.compactMap { deliveries[$0]?.device }
        for resolution in endpoints[endpoint].queue.finished(batch.id, outcome: outcome, except: notAccepted, now: now) {
            switch resolution {
            case .accepted(let id):
                finished.accepted.append(times[id])
                if isTraced { deliveries[id]?.trace?.mark(.posted) }
                let isEnded = delivery(id).map(ended.contains) ?? false
                finished.completed += end(id, as: isEnded ? .ended : .accepted)
            case .dropped(let id): finished.refused.append(id)
            case .retrying: finished.retriedCount += 1
            }
        }
        for device in moved { moveFromFormer(device, now: now) }
        changed(endpoint)
        let after = endpoints[endpoint].queue.breaker
        if endpoints[endpoint].isUnavailable(at: now) { finished.completed += failAwaited(at: endpoint) }
        finished.failure = endpoints[endpoint].failure
        switch (before.isClosed, after.isClosed) {
        case (true, false): finished.breakerChange = .opened
        case (false, true): finished.breakerChange = .closed
        default: break
        }
        return finished
    }

    /// Those of every gorush.
    var areAllBreakersClosed: Bool { endpoints[..<gorushCount].allSatisfy(\.queue.breaker.isClosed) }

    /// The breaker is open, so deliveries that are not posted yet are reported as failed. Deliveries in flight may still be accepted in time:
    /// requests wait for them until their deadline.
    private mutating func failAwaited(at endpoint: Int) -> [AwaitedDeliveryTable.Completed] {
        let unanswered = Set(endpoints[endpoint].queue.deliveriesInFlight.compactMap { deliveries[$0]?.delivery })
        var completed: [AwaitedDeliveryTable.Completed] = []
        // The queue of a push service is mostly shorter than the list of deliveries that requests wait for.
        let own =
            endpoints[endpoint].origin == nil
            ? awaited.deliveries.filter { self.endpoint(of: $0) == endpoint }
            : endpoints[endpoint].queue.deliveries.keys.compactMap { deliveries[$0]?.delivery }
        for delivery in own where !unanswered.contains(delivery) { completed += awaited.resolve(delivery, as: .failed) }
        return completed
    }

    // MARK: Standing

    /// Records recipients for which gorush accepted a notification. Their places in a full outbox are kept before those of others.
    mutating func becameKnown(_ recipients: some Sequence<PushRecipient>) {
        for recipient in recipients where known.refreshedValue(of: recipient) == nil {
            known.set((), of: recipient)
            for index in 0..<gorushCount { endpoints[index].queue.becameKnown(recipient) }
        }
    }

    var knownCount: Int { known.count }

    // MARK: Ends

    func delivery(_ id: Int64) -> DeliveryID? { deliveries[id]?.delivery }

    /// Reports the outcome of a delivery that is in no queue.
    mutating func resolve(_ delivery: DeliveryID, as outcome: DeliveryOutcome) -> [AwaitedDeliveryTable.Completed] {
        awaited.resolve(delivery, as: outcome)
    }

    /// Removes a delivery from its queue and reports its outcome. Returns the requests that it completes.
    mutating func end(_ id: Int64, as outcome: DeliveryOutcome) -> [AwaitedDeliveryTable.Completed] {
        if isTraced, outcome == .failed { deliveries[id]?.trace?.fail("notification given up") }
        return forget(id).map { awaited.resolve($0, as: outcome) } ?? []
    }

    /// Removes a delivery from its queue without an outcome; requests keep waiting for it.
    @discardableResult
    mutating func forget(_ id: Int64) -> DeliveryID? {
        postable[id] = nil
        times[id] = nil
        guard let queued = deliveries.removeValue(forKey: id) else { return nil }
        endpoints[queued.endpoint].queue.remove(id)
        endpoints[queued.endpoint].referenceCount -= 1
        changed(queued.endpoint)
        ids[queued.delivery] = nil
        devices[queued.device]?.count -= 1
        if let device = devices[queued.device], device.count == 0 {
            devices[queued.device] = nil
            formerEndpoints[queued.device] = nil
            endpoints[device.endpoint].referenceCount -= 1
            changed(device.endpoint)
        }
        return queued.delivery
    }

    /// Removes deliveries from the queue of an endpoint; requests may still wait for them.
    mutating func remove(_ ids: [Int64], from endpoint: Int) {
        for id in ids { endpoints[endpoint].queue.remove(id) }
        changed(endpoint)
    }

    // MARK: Other nodes

    /// Removes the deliveries of these devices, except those in flight; requests keep waiting for them.
    mutating func leave(_ devices: (DeviceID) -> Bool) {
        let inFlight = Set(endpoints.lazy.flatMap(\.queue.deliveriesInFlight))
        for (id, queued) in deliveries where !inFlight.contains(id) {
            if let device = endpoints[queued.endpoint].queue.device(of: id), devices(device) { forget(id) }
        }
    }

    func isPosting(for devices: (DeviceID) -> Bool) -> Bool {
        endpoints.contains { $0.queue.devicesInFlight.contains(where: devices) }
    }

    /// Records deliveries just added to the outbox for devices of other nodes, so that the first request that waits for one does not look it up.
    mutating func markRemote(_ deliveries: [DeliveryID]) {
        for delivery in deliveries { elsewhere.set((), of: delivery) }
    }

    /// The deliveries that requests wait for and that are in no queue.
    var awaitedElsewhere: [DeliveryID] { awaited.deliveries.filter { ids[$0] == nil } }

    // MARK: The operator

    /// - Parameter ids: nil for all. Returns the ids that are in a queue.
    func waiting(_ ids: [Int64]?) -> [Int64] {
        ids.map { $0.filter { deliveries[$0] != nil } } ?? Array(deliveries.keys)
    }

    /// - Parameter ids: nil for all that wait. Returns those of these deliveries that are not in flight.
    mutating func hasten(_ ids: [Int64]?, now: Timestamp) -> [Int64] {
        endpoints.indices.flatMap { index in
            defer { changed(index) }
            return endpoints[index].queue.hasten(ids, now: now)
        }
    }

    /// Starts no new posts.
    mutating func drain() {
        isDraining = true
        for index in endpoints.indices { endpoints[index].queue.drain() }
    }

    /// Whether all posts have ended after ``drain()``.
    var isDrained: Bool { endpoints.allSatisfy(\.queue.isDrained) }

    /// A queue for another push service.
    func makeQueue() -> DeliveryQueue {
        var queue = DeliveryQueue(configuration: origins.configuration.queue)
        if isDraining { queue.drain() }
        return queue
    }

    // MARK: Figures

    var count: Int { deliveries.count }
    /// The age of the delivery that has waited longest for a gorush, or for an endpoint; nil when none does. Web Push does not count: anybody may
    /// register a push service that does not answer.
    func oldestAge(at now: Timestamp) -> Duration? {
        deliveries.values.lazy.filter { $0.endpoint <= unroutableIndex }.map(\.since).min().map { max(.zero, now.since($0)) }
    }
    var unroutableCount: Int { endpoints[unroutableIndex].queue.count }
    var awaitingCount: Int { awaited.count }
    /// The number of notifications in unanswered posts.
    var unansweredCount: Int { endpoints.reduce(0) { $0 + $1.queue.deliveriesInFlight.count(where: { _ in true }) } }

    func states(_ rules: [EndpointRule], now: Timestamp) -> [EndpointState] {
        zip(rules, endpoints).map { rule, endpoint in
            EndpointState(
                name: rule.name, breaker: endpoint.queue.breaker, isOpen: endpoint.queue.breaker.isOpen(at: now),
                slowness: endpoint.queue.slowness(at: now), unanswered: endpoint.queue.unanswered(at: now),
                batchLimit: endpoint.queue.batchLimit(at: now), waitingCount: endpoint.queue.count, failure: endpoint.failure,
                healthFailure: endpoint.healthFailure)
        }
    }
}
