import Gorush
import NodeMetrics
import Primitives
import PushTypes
import Waku

/// What is on its way to gorush and who waits for it, as a value: ``DeliveryService`` holds it under one lock.
struct DeliveryTable {
    /// Beyond, deliveries are read from the outbox.
    private static let postableLimit = 1_024
    private static let elsewhereCapacity = 10_000

    private struct Queued {
        let delivery: DeliveryID
        /// By the place of its endpoint.
        let endpoint: Int
        /// See ``Arrival/heldUntil``.
        let heldUntil: Timestamp?
    }

    private struct Endpoint {
        /// None knows of another's.
        var queue: DeliveryQueue
        /// Why the last post failed.
        var failure = ""
        /// Whether it was slow when that was last looked at.
        var isSlow = false
        /// Whether it has answered a post.
        var hasAnswered = false
        /// See ``EndpointState/healthFailure``.
        var healthFailure: String?
    }

    private var endpoints: [Endpoint]
    /// What is in the queues, by both of its names.
    private var deliveries: [Int64: Queued] = [:]
    private var endpointByDelivery: [DeliveryID: Int] = [:]
    /// Of the requests that brought them in this life.
    private var times: [Int64: MessageTimes] = [:]
    /// What was just put into the outbox and is likely to be posted next: it need not be read again, as long as its device has not changed.
    private var postable: [Int64: PostableDelivery] = [:]
    private var awaited = AwaitedDeliveryTable()
    /// See ``noteElsewhere(_:)``. Each until it is waited for.
    private var elsewhere = GenerationalCache<DeliveryID, Void>(capacity: Self.elsewhereCapacity)

    init(_ queues: [DeliveryQueue]) {
        endpoints = queues.map { Endpoint(queue: $0) }
    }

    // MARK: What comes in

    struct Arrival {
        let waiting: WaitingDelivery
        let postable: PostableDelivery?
        let times: MessageTimes?
        let endpoint: Int
        /// See ``QueuedDelivery/group``.
        var group: Int64?
        /// A post by an earlier run or another node has an unknown outcome: unless the device shows it once, it is not posted again before this
        /// time, by the queue's clock.
        var heldUntil: Timestamp?
    }

    /// - Parameters:
    ///   - clock: the system's, by which they expire: it may have been set since the start; the queue's time runs on.
    ///   - isAwaited: somebody waits for them.
    mutating func add(_ arrivals: some Sequence<Arrival>, isAwaited: Bool, clock: Timestamp, now: Timestamp) {
        for arrival in arrivals where endpointByDelivery[arrival.waiting.delivery] == nil {
            let waiting = arrival.waiting
            endpointByDelivery[waiting.delivery] = arrival.endpoint
            deliveries[waiting.id] = Queued(
                delivery: waiting.delivery, endpoint: arrival.endpoint, heldUntil: arrival.heldUntil)
            times[waiting.id] = arrival.times
            if postable.count < Self.postableLimit { postable[waiting.id] = arrival.postable }
            endpoints[arrival.endpoint].queue.add(
                waiting.id, device: waiting.device, expires: now + waiting.expires.since(clock), isAwaited: isAwaited,
                group: arrival.group, now: now)
        }
    }

    /// What becomes of somebody who wants to wait.
    enum Waiting {
        /// To look these up: they are in no queue, and not known to wait for another node.
        case waits(unknown: [DeliveryID])
        /// No gorush that they go to takes anything.
        case refused(AwaitedDeliveryTable.Completed)
    }

    mutating func await(_ awaited: AwaitedDeliveries, deadline: Timestamp, now: Timestamp) -> Waiting {
        var outcomes: [DeliveryID: DeliveryOutcome] = [:]
        var unknown: [DeliveryID] = []
        for delivery in awaited.deliveries {
            guard let endpoint = endpointByDelivery[delivery] else {
                if elsewhere.contains(delivery) { elsewhere.remove(delivery) } else { unknown.append(delivery) }
                continue
            }
            if endpoints[endpoint].queue.breaker.isOpen(at: now) { outcomes[delivery] = .failed }
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
        /// When to look again.
        var next: Timestamp?
    }

    mutating func step(now: Timestamp) -> Step {
        var step = Step(completed: awaited.end(before: now))
        for index in endpoints.indices {
            step.actions += endpoints[index].queue.actions(now: now).map { (index, $0) }
            step.next = [step.next, endpoints[index].queue.nextWake(now: now)].compactMap(\.self).min()
        }
        step.next = [step.next, awaited.nextDeadline].compactMap(\.self).min()
        return step
    }

    /// Endpoints that began to owe answers, or owe none any more, since this was last asked.
    mutating func slownessChanges(now: Timestamp) -> [(endpoint: Int, slowness: DeliveryQueue.Slowness?)] {
        endpoints.indices.compactMap { index in
            let slowness = endpoints[index].queue.slowness(at: now)
            guard endpoints[index].isSlow != (slowness != nil) else { return nil }
            endpoints[index].isSlow = slowness != nil
            return (index, slowness)
        }
    }

    var isAnySlow: Bool { endpoints.contains(where: \.isSlow) }

    // MARK: Health checks

    func hasAnsweredPost(_ endpoint: Int) -> Bool { endpoints[endpoint].hasAnswered }

    /// - Parameter reason: nil when it has answered its health check.
    mutating func setHealthFailure(_ reason: String?, of endpoint: Int) {
        endpoints[endpoint].healthFailure = endpoints[endpoint].hasAnswered ? nil : reason
    }

    // MARK: Posts

    /// See ``Arrival/heldUntil``; those without are left out.
    func heldUntil(_ ids: some Sequence<Int64>) -> [Int64: Timestamp] {
        ids.reduce(into: [:]) { $0[$1] = deliveries[$1]?.heldUntil }
    }

    /// These of a batch are not posted before some time.
    mutating func postpone(_ due: [Int64: Timestamp], of batch: DeliveryQueue.Batch, at endpoint: Int) {
        endpoints[endpoint].queue.postpone(due, of: batch.id)
    }

    /// Those of a batch that need not be read from the outbox, if their devices have not changed.
    mutating func takePostable(of batch: DeliveryQueue.Batch) -> [Int64: PostableDelivery] {
        batch.deliveries.reduce(into: [:]) { $0[$1] = postable.removeValue(forKey: $1) }
    }

    mutating func sent(_ batch: DeliveryQueue.Batch, count: Int, by endpoint: Int, now: Timestamp) {
        endpoints[endpoint].queue.sent(batch.id, count: count, now: now)
    }

    /// Returns whether the endpoint was slow: then other posts may go out.
    mutating func answered(_ batch: DeliveryQueue.Batch, _ outcome: PostOutcome, by endpoint: Int, now: Timestamp) -> Bool {
        switch outcome {
        case .accepted, .refused:
            endpoints[endpoint].hasAnswered = true
            endpoints[endpoint].healthFailure = nil
        case .failed, .notPosted: break
        }
        defer { endpoints[endpoint].queue.answered(batch.id, outcome: outcome, now: now) }
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

    /// - Parameter untaken: those that gorush had no room for, though it accepted the post.
    mutating func finished(
        _ batch: DeliveryQueue.Batch, _ outcome: PostOutcome, by endpoint: Int, except untaken: Set<Int64>, now: Timestamp
    ) -> Finished {
        var finished = Finished()
        let before = endpoints[endpoint].queue.breaker
        for resolution in endpoints[endpoint].queue.finished(batch.id, outcome: outcome, except: untaken, now: now) {
            switch resolution {
            case .accepted(let id):
                finished.accepted.append(times[id])
                finished.completed += end(id, as: .accepted)
            case .dropped(let id): finished.refused.append(id)
            case .retrying: finished.retriedCount += 1
            }
        }
        let after = endpoints[endpoint].queue.breaker
        if after.isOpen(at: now) { finished.completed += failAwaited(at: endpoint) }
        finished.failure = endpoints[endpoint].failure
        switch (before.isClosed, after.isClosed) {
        case (true, false): finished.breakerChange = .opened
        case (false, true): finished.breakerChange = .closed
        default: break
        }
        return finished
    }

    var areAllBreakersClosed: Bool { endpoints.allSatisfy(\.queue.breaker.isClosed) }

    /// gorush is given up: whoever waits for a notification to be posted would wait in vain. One whose post is unanswered may still be
    /// accepted in time: for that is waited until the deadline.
    private mutating func failAwaited(at endpoint: Int) -> [AwaitedDeliveryTable.Completed] {
        let unanswered = Set(endpoints[endpoint].queue.deliveriesInFlight.compactMap { deliveries[$0]?.delivery })
        var completed: [AwaitedDeliveryTable.Completed] = []
        for delivery in Array(awaited.deliveries) where endpointByDelivery[delivery] == endpoint && !unanswered.contains(delivery) {
            completed += awaited.resolve(delivery, as: .failed)
        }
        return completed
    }

    // MARK: Ends

    func delivery(_ id: Int64) -> DeliveryID? { deliveries[id]?.delivery }

    /// It is known what became of a delivery that is in no queue.
    mutating func resolve(_ delivery: DeliveryID, as outcome: DeliveryOutcome) -> [AwaitedDeliveryTable.Completed] {
        awaited.resolve(delivery, as: outcome)
    }

    /// It left the queue, or leaves it now. Returns those that are complete by that.
    mutating func end(_ id: Int64, as outcome: DeliveryOutcome) -> [AwaitedDeliveryTable.Completed] {
        forget(id).map { awaited.resolve($0, as: outcome) } ?? []
    }

    /// It is not in the queue any more; who waits for it goes on waiting.
    @discardableResult
    mutating func forget(_ id: Int64) -> DeliveryID? {
        postable[id] = nil
        times[id] = nil
        guard let queued = deliveries.removeValue(forKey: id) else { return nil }
        endpoints[queued.endpoint].queue.remove(id)
        endpointByDelivery[queued.delivery] = nil
        return queued.delivery
    }

    /// They leave the queue of an endpoint; they may still be waited for.
    mutating func remove(_ ids: [Int64], from endpoint: Int) {
        for id in ids { endpoints[endpoint].queue.remove(id) }
    }

    // MARK: Other nodes

    /// The deliveries of these devices leave the queues, except those in flight; who waits for them goes on waiting.
    mutating func leave(_ devices: (DeviceID) -> Bool) {
        let inFlight = Set(endpoints.lazy.flatMap(\.queue.deliveriesInFlight))
        for (id, queued) in deliveries where !inFlight.contains(id) {
            if let device = endpoints[queued.endpoint].queue.device(of: id), devices(device) { forget(id) }
        }
    }

    func isPosting(for devices: (DeviceID) -> Bool) -> Bool {
        endpoints.contains { $0.queue.devicesInFlight.contains(where: devices) }
    }

    /// Put into the outbox just now, for other nodes' devices: there is nothing to look up before those have posted.
    mutating func noteElsewhere(_ deliveries: [DeliveryID]) {
        for delivery in deliveries { elsewhere.set((), of: delivery) }
    }

    /// Those that somebody waits for and that are in no queue.
    var awaitedElsewhere: [DeliveryID] { awaited.deliveries.filter { endpointByDelivery[$0] == nil } }

    // MARK: The operator

    /// - Parameter ids: nil for all. Returns those that are in a queue.
    func waiting(_ ids: [Int64]?) -> [Int64] {
        ids.map { $0.filter { deliveries[$0] != nil } } ?? Array(deliveries.keys)
    }

    /// - Parameter ids: nil for all that wait. Returns how many are tried again at once.
    mutating func hasten(_ ids: [Int64]?, now: Timestamp) -> Int {
        endpoints.indices.reduce(0) { $0 + endpoints[$1].queue.hasten(ids, now: now) }
    }

    /// Nothing new is posted from now on.
    mutating func drain() {
        for index in endpoints.indices { endpoints[index].queue.drain() }
    }

    /// After ``drain()``.
    var isDrained: Bool { endpoints.allSatisfy(\.queue.isDrained) }

    // MARK: Figures

    var count: Int { deliveries.count }
    var awaitingCount: Int { awaited.count }
    /// Notifications whose post has no answer.
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
