import Core
import CurlClient

/// The queues of push services. Each service has a queue, a pace, a breaker and limits of its own, so that none holds up another.
///
///     no deliveries ──(first delivery)──▶ waiting ──(a place is free)──▶ open, with posts in flight ──(posts ended)──▶ waiting or gone
///                                           ▲                                    │
///                                           └──(others wait and 10 s passed)─────┘
///
/// Services at one address share a pace too: see ``AddressPace``. Until a service's address is known, one post to it is in flight at a time.
///
/// At most ``Configuration/openLimit`` are open at once, of which services that do not answer have a small part: see ``OriginPlaces``. A service
/// without deliveries has no queue: ``OriginMemory`` keeps its breaker and its standing while there is room. A step looks only at queues that changed
/// or are due.
struct OriginQueues {
    struct Configuration {
        /// The maximum number of push services with posts in flight.
        var openLimit = 1000
        /// While others wait for a place, a service gives its place up after this time.
        var turn = Duration.seconds(10)
        /// Services that wait longer for a place are reported.
        let longWait = Duration.seconds(3)
        /// The maximum number of deliveries in all queues. Beyond it, each new one displaces one: see ``OriginRoom``.
        var waitingLimit = 100_000
        var standing = OriginStanding.Configuration()
        var queue = Self.standardQueue

        static var standardQueue: DeliveryQueue.Configuration {
            var queue = DeliveryQueue.Configuration()
            queue.maximumBatchCount = 1
            queue.probeBatchCount = 1
            queue.maximumBatchesInFlight = 8
            // Anybody can have subscriptions that a push service does not answer: these do not slow down the posts for others.
            queue.doubtsStrangers = true
            queue.favorsRested = true
            queue.slowAfter = .seconds(3600)
            queue.longestRetryAfter = WebPushAnswer.longestRetryAfter
            queue.breaker.longestRetryAfter = WebPushAnswer.longestRetryAfter
            queue.breaker.backoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(30))
            // Anybody can have subscriptions that a push service answers with errors.
            queue.breaker.suspectFailureLimit = .max
            queue.breaker.recipientLimit = 16
            return queue
        }
    }

    struct Service {
        var queue: DeliveryQueue
        /// See `WebPushOrigin.domain`.
        let domain: String
        var standing: OriginStanding
        /// When it became open, and where; nil when it is not.
        var open: (since: Timestamp, part: OriginPlaces.Part)?
        /// Where it waits for a place; nil when it does not.
        var line: OriginPlaces.Part?
        /// Whether it is in ``OriginQueues/changed``.
        var isChanged = false
        /// The counts of its queue that those over all services include.
        var counts = Counts()
        /// Where it last answered from; nil while that is not known.
        var address: IPAddress?
        /// See ``AddressPace``.
        var turn: Timestamp?

        static var missing: Self { preconditionFailure("a push service is released only when nothing refers to it") }

        /// Whether nothing is posted now: the breaker is open, or the service is paused.
        func isUnavailable(at now: Timestamp) -> Bool { queue.breaker.isOpen(at: now) || standing.isPaused(at: now) }
    }

    struct Counts {
        var deliveries = 0
        var inFlight = 0
        /// Those that may be evicted: a post to a push service has one delivery.
        var evictable: Int { max(0, deliveries - inFlight) }
    }

    let configuration: Configuration
    private var isDraining = false
    /// Those with deliveries, or with devices whose next deliveries they take.
    private(set) var services: [WebPushOrigin: Service] = [:]
    private(set) var addresses = AddressPaces()
    /// The services to look at in the next step.
    private(set) var changed: [WebPushOrigin] = []
    private var wakes = IndexedHeap<WebPushOrigin, Timestamp>()
    private(set) var room = OriginRoom()
    private(set) var waitingCount = 0
    private(set) var responsive: OriginPlaces
    private(set) var others: OriginPlaces
    private(set) var memory = OriginMemory()
    /// Whether a long wait was reported that has not ended: see ``longWaitChange(now:)``.
    var isWaitLong = false

    init(_ configuration: Configuration) {
        self.configuration = configuration
        responsive = OriginPlaces(.responsive, of: configuration.openLimit)
        others = OriginPlaces(.others, of: configuration.openLimit)
    }

    private(set) subscript(part: OriginPlaces.Part) -> OriginPlaces {
        get { part == .responsive ? responsive : others }
        _modify { if part == .responsive { yield &responsive } else { yield &others } }
    }

    /// The queue of a service that has one.
    subscript(origin: WebPushOrigin) -> DeliveryQueue {
        get { services[origin, default: .missing].queue }
        _modify { yield &services[origin, default: .missing].queue }
    }

    var openCount: Int { responsive.openCount + others.openCount }

    var nextWake: Timestamp? { wakes.first?.key }

    // MARK: Services

    /// Makes a queue for a service that has none, with the breaker and the standing that it had before.
    mutating func add(_ origin: WebPushOrigin, now: Timestamp) {
        guard services[origin] == nil else { return }
        let memory = memory.entry(of: origin)
        var service = Service(
            queue: makeQueue(), domain: origin.domain, standing: memory?.standing ?? OriginStanding(configuration.standing))
        if let memory {
            service.queue.breaker = memory.breaker
            service.queue.lastNumber = memory.lastNumber
            move(origin, &service, to: memory.address, now: now)
        }
        services[origin] = service
    }

    private func makeQueue() -> DeliveryQueue {
        var queue = DeliveryQueue(configuration: configuration.queue)
        if isDraining { queue.drain() }
        return queue
    }

    /// Records that a queue may have something to do.
    mutating func queueChanged(_ origin: WebPushOrigin) {
        guard var service = services.removeValue(forKey: origin) else { return }
        updateCounts(origin, &service)
        markChanged(origin, &service)
        services[origin] = service
    }

    private mutating func markChanged(_ origin: WebPushOrigin, _ service: inout Service) {
        guard !service.isChanged else { return }
        service.isChanged = true
        changed.append(origin)
    }

    /// Updates the counts over all services for one whose queue may have changed.
    private mutating func updateCounts(_ origin: WebPushOrigin, _ service: inout Service) {
        let before = service.counts
        let counts = Counts(deliveries: service.queue.count, inFlight: service.queue.batchesInFlight)
        service.counts = counts
        waitingCount += counts.deliveries - before.deliveries
        room.changed(origin, at: service.address, from: before.evictable, to: counts.evictable)
        if let address = service.address { addresses.addInFlight(counts.inFlight - before.inFlight, at: address) }
    }

    /// Counts a service at another address, or at none.
    private mutating func move(_ origin: WebPushOrigin, _ service: inout Service, to address: IPAddress?, now: Timestamp) {
        guard service.address != address else { return }
        let counts = service.counts
        if let former = service.address { addresses.leave(former, inFlight: counts.inFlight, now: now) }
        room.changed(origin, at: service.address, from: counts.evictable, to: 0)
        room.changed(origin, at: address, from: 0, to: counts.evictable)
        service.address = address
        service.turn = nil
        if let address { addresses.join(address, inFlight: counts.inFlight, standing: configuration.standing, now: now) }
    }

    /// - Parameter count: the deliveries that remain in any case: more than the limit if some were inherited.
    mutating func evict(beyond count: Int) {
        while waitingCount > max(configuration.waitingLimit, count), let origin = room.loser {
            let before = waitingCount
            services[origin]?.queue.evictOne()
            queueChanged(origin)
            guard waitingCount < before else { return }
        }
    }

    private mutating func release(_ origin: WebPushOrigin, _ service: inout Service, now: Timestamp) {
        leaveLine(origin, &service)
        if service.queue.breaker.isClosed, service.standing.isForgettable(at: now), service.address == nil {
            memory.remove(origin)
        } else {
            let entry = OriginMemory.Entry(
                standing: service.standing, breaker: service.queue.breaker, lastNumber: service.queue.lastNumber, address: service.address)
            memory.set(entry, of: origin, now: now)
        }
        move(origin, &service, to: nil, now: now)
    }

    /// Starts no new posts.
    mutating func drain() {
        isDraining = true
        for origin in services.keys { services[origin]?.queue.drain() }
    }

    // MARK: Time

    /// - Parameter isNeeded: whether deliveries or devices refer to a service, so that it is kept.
    mutating func actions(
        now: Timestamp, isNeeded: (WebPushOrigin) -> Bool
    ) -> [(endpoint: EndpointID, action: DeliveryQueue.Action)] {
        while let (due, origin) = wakes.first, due <= now {
            wakes.remove(origin)
            queueChanged(origin)
        }
        var actions: [(endpoint: EndpointID, action: DeliveryQueue.Action)] = []
        var next = 0
        // The end of one service's posts may open others.
        while next < changed.count {
            let origin = changed[next]
            next += 1
            actions += self.actions(of: origin, isNeeded: isNeeded(origin), now: now).map { (EndpointID.webPush(origin), $0) }
        }
        changed.removeAll(keepingCapacity: true)
        return actions
    }

    private mutating func actions(of origin: WebPushOrigin, isNeeded: Bool, now: Timestamp) -> [DeliveryQueue.Action] {
        guard var service = services.removeValue(forKey: origin) else { return [] }
        service.isChanged = false
        let part: OriginPlaces.Part = service.standing.isResponsive(at: now) ? .responsive : .others
        if let line = service.line, line != part { leaveLine(origin, &service) }
        if let open = service.open, open.part != part, self[part].hasRoom(for: service.domain) {
            self[part].open(service.domain)
            service.open = (now, part)
            freePlace(in: open.part, of: service.domain, now: now)
        }
        let isTurnOver = isTurnOver(service, part, now: now)
        let hasPlace = service.open != nil || self[part].hasRoom(for: service.domain)
        let allowance = allowance(of: &service, now: now)
        service.queue.allowance = hasPlace && !isTurnOver ? allowance : DeliveryQueue.Allowance(count: 0)
        let actions = service.queue.actions(now: now)
        let postCount = actions.count { if case .post = $0 { true } else { false } }
        if postCount > 0 {
            takeAllowance(of: postCount, &service, now: now)
            if service.open == nil {
                leaveLine(origin, &service)
                self[part].open(service.domain)
                service.open = (now, part)
            }
        }
        updateCounts(origin, &service)
        let isIdle = service.queue.batchesInFlight == 0
        if isIdle { close(&service, now: now) }
        if !hasPlace || isIdle && isTurnOver { joinLine(origin, &service, part, allowance, now: now) }
        wakes.remove(origin)
        if service.queue.count == 0, isIdle, !isNeeded {
            release(origin, &service, now: now)
        } else {
            if let wake = service.queue.nextWake(now: now) { wakes.insert(origin, key: wake) }
            services[origin] = service
        }
        return actions
    }

    /// The posts that a push service's own pace and that of its address allow now.
    private mutating func allowance(of service: inout Service, now: Timestamp) -> DeliveryQueue.Allowance {
        let own = service.standing.allowance(at: now)
        let inFlight = service.queue.batchesInFlight
        // A turn is for services with something to post.
        guard own.count > 0, service.queue.count > inFlight, !service.queue.breaker.isOpen(at: now) else { return own }
        guard let address = service.address,
            let shared = addresses.allowance(of: address, turn: &service.turn, ownInFlight: inFlight, at: now)
        else { return DeliveryQueue.Allowance(count: inFlight == 0 ? 1 : 0) }
        return DeliveryQueue.Allowance(
            count: min(own.count, shared.count),
            resumes: shared.count == 0 ? shared.resumes : [own.resumes, shared.resumes].compactMap(\.self).max())
    }

    /// Whether an open service gives its place up as soon as its posts have ended: others wait for it, or it belongs to the other part.
    private func isTurnOver(_ service: Service, _ part: OriginPlaces.Part, now: Timestamp) -> Bool {
        guard let open = service.open else { return false }
        if part == .others, open.part != part { return true }
        // One that answers again keeps its place until its turn ends, or there is room among those that do.
        return open.since + configuration.turn <= now && self[open.part].isWanted(service.domain)
    }

    /// Takes posts from the allowances of a service and of its address.
    private mutating func takeAllowance(of postCount: Int, _ service: inout Service, now: Timestamp) {
        service.standing.posted(postCount, at: now)
        if let address = service.address { addresses.posted(postCount, to: address, turn: &service.turn, at: now) }
    }

    private mutating func close(_ service: inout Service, now: Timestamp) {
        guard let open = service.open else { return }
        service.open = nil
        freePlace(in: open.part, of: service.domain, now: now)
    }

    private mutating func freePlace(in part: OriginPlaces.Part, of domain: String, now: Timestamp) {
        self[part].close(domain)
        while let next = self[part].next() {
            services[next]?.line = nil
            services[next]?.open = (now, part)
            queueChanged(next)
        }
    }

    private mutating func joinLine(
        _ origin: WebPushOrigin, _ service: inout Service, _ part: OriginPlaces.Part, _ allowance: DeliveryQueue.Allowance, now: Timestamp
    ) {
        guard service.open == nil, service.line == nil, service.queue.count > 0 else { return }
        // A place became free meanwhile.
        guard !self[part].hasRoom(for: service.domain) else { return markChanged(origin, &service) }
        guard allowance.count > 0, !service.queue.breaker.isOpen(at: now) else {
            // It could not use a place: it asks again when it could.
            service.queue.allowance = DeliveryQueue.Allowance(count: 0, resumes: allowance.count > 0 ? now : allowance.resumes)
            return
        }
        service.line = part
        self[part].join(origin, of: service.domain, at: now)
    }

    private mutating func leaveLine(_ origin: WebPushOrigin, _ service: inout Service) {
        guard let line = service.line else { return }
        service.line = nil
        self[line].leave(origin, of: service.domain)
    }

    // MARK: Answers

    /// Records that a service accepted a message for a subscription.
    mutating func becameKnown(_ recipient: PushRecipient, at origin: WebPushOrigin) {
        services[origin]?.queue.becameKnown(recipient)
        queueChanged(origin)
    }

    /// Whether a service accepted a message lately.
    func isProven(_ origin: WebPushOrigin, at now: Timestamp) -> Bool { services[origin]?.standing.isProven(at: now) ?? false }

    /// Records a push service's answer. Returns whether the service is paused from now on because of its refusals.
    ///
    /// - Parameters:
    ///   - endpointHash: of the subscription's endpoint.
    ///   - address: where the answer came from; nil without one.
    ///   - time: the duration of the post.
    ///   - postCount: the number of posts that it took, the first of which was taken from the allowances when it went out.
    mutating func noteAnswer(
        _ answer: WebPushAnswer, of origin: WebPushOrigin, endpointHash: Int, from address: IPAddress?, after time: Duration,
        postCount: Int = 1, now: Timestamp
    ) -> Bool {
        guard var service = services.removeValue(forKey: origin) else { return false }
        defer { services[origin] = service }
        if let address { move(origin, &service, to: address.site, now: now) }
        if postCount > 1 { takeAllowance(of: postCount - 1, &service, now: now) }
        if answer == .accepted { service.standing.accepted(at: now) }
        service.standing.answered(after: answer == .unanswered ? nil : time, isAccepted: answer == .accepted)
        return answer.isRefusal && service.standing.refused(endpoint: endpointHash, at: now)
    }

    /// Records push services that accepted messages before this process started, or messages of other nodes.
    mutating func acceptedBefore(_ origins: some Sequence<WebPushOrigin>, now: Timestamp) {
        for origin in origins {
            if services[origin] != nil {
                if services[origin]?.standing.acceptedBefore(at: now) == true { queueChanged(origin) }
                continue
            }
            let entry = memory.entry(of: origin)
            var standing = entry?.standing ?? OriginStanding(configuration.standing)
            guard standing.acceptedBefore(at: now) else { continue }
            memory.set(
                OriginMemory.Entry(
                    standing: standing, breaker: entry?.breaker ?? makeQueue().breaker, lastNumber: entry?.lastNumber ?? 0,
                    address: entry?.address), of: origin, now: now)
        }
    }
}
