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
/// At most ``Origins/Configuration/openLimit`` are open at once, of which services that do not answer have a small part: see ``OriginPlaces``. A
/// service without deliveries has no queue: `OriginMemory` keeps its breaker and its standing while there is room. A turn looks only at queues that
/// changed or are due.
extension DeliveryTable {
    struct Origin {
        let origin: WebPushOrigin
        /// See `WebPushOrigin.domain`.
        let domain: String
        var standing: OriginStanding
        /// When it became open, and where; nil when it is not.
        var open: (since: Timestamp, part: OriginPlaces.Part)?
        /// Where it waits for a place; nil when it does not.
        var line: OriginPlaces.Part?
        /// Whether it is in ``Origins/changed``.
        var isChanged = false
        /// The count of its queue that ``Origins/waitingCount`` includes.
        var count = 0
        /// Those of its deliveries that may be evicted, as ``Origins/room`` counts them.
        var evictableCount = 0
        /// Where it last answered from; nil while that is not known.
        var address: IPAddress?
        /// See ``AddressPace``.
        var turn: Timestamp?
        /// The posts in flight that ``AddressPace/inFlight`` includes.
        var inFlight = 0
    }

    struct Origins {
        struct Configuration {
            /// The maximum number of push services with posts in flight.
            var openLimit = 1000
            /// While others wait for a place, a service gives its place up after this time.
            var turn = Duration.seconds(10)
            /// Services that wait longer for a place are reported.
            let longWait = Duration.seconds(3)
            /// The maximum number of deliveries in all queues. Beyond it, some are evicted: see ``OriginRoom``.
            var waitingLimit = 100_000
            var standing = OriginStanding.Configuration()
            var queue = Self.standardQueue

            static var standardQueue: DeliveryQueue.Configuration {
                var queue = DeliveryQueue.Configuration()
                queue.maximumBatchCount = 1
                queue.probeBatchCount = 1
                queue.maximumBatchesInFlight = 8
                queue.longestRetryAfter = WebPushAnswer.longestRetryAfter
                queue.breaker.longestRetryAfter = WebPushAnswer.longestRetryAfter
                queue.breaker.backoff = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(300))
                // Anybody can have subscriptions that a push service answers with errors.
                queue.breaker.suspectFailureLimit = .max
                queue.breaker.recipientLimit = 16
                return queue
            }
        }

        let configuration: Configuration
        /// Of the services in ``DeliveryTable/endpoints``.
        var indices: [WebPushOrigin: Int] = [:]
        var addresses = AddressPaces()
        var free: [Int] = []
        /// Indices of endpoints to look at in the next step.
        var changed: [Int] = []
        var wakes = IndexedHeap<Timestamp>()
        var room = OriginRoom()
        var waitingCount = 0
        var responsive: OriginPlaces
        var others: OriginPlaces
        var memory = OriginMemory()
        /// Whether a long wait was reported that has not ended: see ``longWaitChange(now:)``.
        var isWaitLong = false

        init(_ configuration: Configuration) {
            self.configuration = configuration
            responsive = OriginPlaces(.responsive, of: configuration.openLimit)
            others = OriginPlaces(.others, of: configuration.openLimit)
        }

        subscript(part: OriginPlaces.Part) -> OriginPlaces {
            get { part == .responsive ? responsive : others }
            _modify { if part == .responsive { yield &responsive } else { yield &others } }
        }

        var openCount: Int { responsive.openCount + others.openCount }

        var nextWake: Timestamp? { wakes.first?.key }
    }

    // MARK: Endpoints

    mutating func index(of destination: Destination?, now: Timestamp) -> Int {
        switch destination {
        case nil: return unroutableIndex
        case .gorush(let index): return index
        case .webPush(let origin):
            if let index = origins.indices[origin] { return index }
            let memory = origins.memory.entry(of: origin)
            var endpoint = Endpoint(queue: makeQueue())
            endpoint.origin = Origin(
                origin: origin, domain: origin.domain, standing: memory?.standing ?? OriginStanding(origins.configuration.standing))
            if let memory {
                endpoint.queue.breaker = memory.breaker
                endpoint.queue.lastNumber = memory.lastNumber
            }
            let index = origins.free.popLast() ?? endpoints.count
            if index == endpoints.count { endpoints.append(endpoint) } else { endpoints[index] = endpoint }
            origins.indices[origin] = index
            if let address = memory?.address { move(index, to: address, now: now) }
            return index
        }
    }

    func destination(_ endpoint: Int) -> Destination {
        endpoints[endpoint].origin.map { .webPush($0.origin) } ?? .gorush(endpoint)
    }

    /// Records that a queue may have something to do. Does nothing for a gorush, whose queue is always looked at.
    mutating func changed(_ index: Int) {
        guard let origin = endpoints[index].origin else { return }
        let count = endpoints[index].queue.count
        if count != origin.count {
            origins.waitingCount += count - origin.count
            endpoints[index].origin?.count = count
        }
        let inFlight = endpoints[index].queue.batchesInFlight
        // A post to a push service has one delivery.
        let evictable = max(0, count - inFlight)
        origins.room.changed(index, at: origin.address, from: origin.evictableCount, to: evictable)
        endpoints[index].origin?.evictableCount = evictable
        if let address = origin.address, inFlight != origin.inFlight {
            origins.addresses.addInFlight(inFlight - origin.inFlight, at: address)
            endpoints[index].origin?.inFlight = inFlight
        }
        guard !origin.isChanged else { return }
        endpoints[index].origin?.isChanged = true
        origins.changed.append(index)
    }

    /// Counts a push service at another address, or at none.
    private mutating func move(_ index: Int, to address: IPAddress?, now: Timestamp) {
        guard let origin = endpoints[index].origin, origin.address != address else { return }
        if let former = origin.address { origins.addresses.leave(former, inFlight: origin.inFlight, now: now) }
        origins.room.changed(index, at: origin.address, from: origin.evictableCount, to: 0)
        origins.room.changed(index, at: address, from: 0, to: origin.evictableCount)
        let inFlight = address == nil ? 0 : endpoints[index].queue.batchesInFlight
        endpoints[index].origin?.address = address
        endpoints[index].origin?.turn = nil
        endpoints[index].origin?.inFlight = inFlight
        if let address { origins.addresses.join(address, inFlight: inFlight, standing: origins.configuration.standing, now: now) }
    }

    mutating func evictBeyondLimit() {
        while origins.waitingCount > origins.configuration.waitingLimit, let index = origins.room.loser {
            let count = endpoints[index].queue.count
            endpoints[index].queue.evictOne()
            guard endpoints[index].queue.count < count else { return }
            changed(index)
        }
    }

    private mutating func release(_ index: Int, now: Timestamp) {
        guard var origin = endpoints[index].origin else { return }
        leaveLine(index)
        let queue = endpoints[index].queue
        if queue.breaker.isClosed, origin.standing.isForgettable(at: now), origin.address == nil {
            origins.memory.remove(origin.origin)
        } else {
            let memory = OriginMemory.Entry(
                standing: origin.standing, breaker: queue.breaker, lastNumber: queue.lastNumber, address: origin.address)
            origins.memory.set(memory, of: origin.origin, now: now)
        }
        move(index, to: nil, now: now)
        origins.indices[origin.origin] = nil
        origins.free.append(index)
        endpoints[index] = Endpoint(queue: makeQueue())
    }

    // MARK: Time

    mutating func originActions(now: Timestamp) -> [(endpoint: Int, action: DeliveryQueue.Action)] {
        while let (due, index) = origins.wakes.first, due <= now {
            origins.wakes.remove(index)
            changed(Int(index))
        }
        var actions: [(endpoint: Int, action: DeliveryQueue.Action)] = []
        var next = 0
        while next < origins.changed.count {
            let index = origins.changed[next]
            next += 1
            guard endpoints[index].origin != nil else { continue }
            actions += self.actions(at: index, now: now).map { (index, $0) }
        }
        origins.changed.removeAll(keepingCapacity: true)
        return actions
    }

    private mutating func actions(at index: Int, now: Timestamp) -> [DeliveryQueue.Action] {
        endpoints[index].origin?.isChanged = false
        guard let origin = endpoints[index].origin else { return [] }
        let part: OriginPlaces.Part = origin.standing.isResponsive(at: now) ? .responsive : .others
        if let line = origin.line, line != part { leaveLine(index) }
        let isTurnOver = isTurnOver(origin, part, now: now)
        let hasPlace = origin.open != nil || origins[part].hasRoom(for: origin.domain)
        let allowance = allowance(of: index, now: now)
        endpoints[index].queue.allowance = hasPlace && !isTurnOver ? allowance : DeliveryQueue.Allowance(count: 0)
        let actions = endpoints[index].queue.actions(now: now)
        let postCount = actions.count { if case .post = $0 { true } else { false } }
        if postCount > 0 {
            endpoints[index].origin?.standing.posted(postCount, at: now)
            if let origin = endpoints[index].origin, let address = origin.address {
                var turn = origin.turn
                origins.addresses.posted(postCount, to: address, turn: &turn, at: now)
                endpoints[index].origin?.turn = turn
            }
            if endpoints[index].origin?.open == nil {
                leaveLine(index)
                origins[part].open(origin.domain)
                endpoints[index].origin?.open = (now, part)
            }
        }
        changed(index, isChanged: false)
        let isIdle = endpoints[index].queue.batchesInFlight == 0
        if isIdle, endpoints[index].origin?.open != nil { close(index, now: now) }
        if !hasPlace || isIdle && isTurnOver { joinLine(index, part, allowance, now: now) }
        origins.wakes.remove(Int64(index))
        if endpoints[index].queue.count == 0, endpoints[index].referenceCount == 0, isIdle {
            release(index, now: now)
        } else if let wake = endpoints[index].queue.nextWake(now: now) {
            origins.wakes.insert(Int64(index), key: wake)
        }
        return actions
    }

    /// The posts that a push service's own pace and that of its address allow now.
    private mutating func allowance(of index: Int, now: Timestamp) -> DeliveryQueue.Allowance {
        let own = endpoints[index].origin?.standing.allowance(at: now) ?? DeliveryQueue.Allowance(count: 0)
        let (queue, inFlight) = (endpoints[index].queue, endpoints[index].queue.batchesInFlight)
        // A turn is for services with something to post.
        guard own.count > 0, queue.count > inFlight, !queue.breaker.isOpen(at: now), let origin = endpoints[index].origin else {
            return own
        }
        var turn = origin.turn
        guard let address = origin.address,
            let shared = origins.addresses.allowance(of: address, turn: &turn, ownInFlight: inFlight, at: now)
        else { return DeliveryQueue.Allowance(count: inFlight == 0 ? 1 : 0) }
        endpoints[index].origin?.turn = turn
        return DeliveryQueue.Allowance(
            count: min(own.count, shared.count),
            resumes: shared.count == 0 ? shared.resumes : [own.resumes, shared.resumes].compactMap(\.self).max())
    }

    /// Updates the counts of a queue that is being looked at.
    private mutating func changed(_ index: Int, isChanged: Bool) {
        endpoints[index].origin?.isChanged = true
        changed(index)
        endpoints[index].origin?.isChanged = isChanged
    }

    /// Whether an open service gives its place up as soon as its posts have ended: others wait for it, or it belongs to the other part.
    private func isTurnOver(_ origin: Origin, _ part: OriginPlaces.Part, now: Timestamp) -> Bool {
        guard let open = origin.open else { return false }
        if open.part != part { return part == .others || origins[part].hasRoom(for: origin.domain) }
        return open.since + origins.configuration.turn <= now && origins[part].isWanted(origin.domain)
    }

    private mutating func close(_ index: Int, now: Timestamp) {
        guard let origin = endpoints[index].origin, let open = origin.open else { return }
        endpoints[index].origin?.open = nil
        origins[open.part].close(origin.domain)
        while let next = origins[open.part].next() {
            endpoints[next].origin?.line = nil
            endpoints[next].origin?.open = (now, open.part)
            changed(next)
        }
    }

    private mutating func joinLine(_ index: Int, _ part: OriginPlaces.Part, _ allowance: DeliveryQueue.Allowance, now: Timestamp) {
        guard let origin = endpoints[index].origin, origin.open == nil, origin.line == nil, endpoints[index].queue.count > 0 else { return }
        guard !origins[part].hasRoom(for: origin.domain) else {
            // A place became free meanwhile.
            changed(index)
            return
        }
        guard allowance.count > 0, !endpoints[index].queue.breaker.isOpen(at: now) else {
            // It could not use a place: it asks again when it could.
            endpoints[index].queue.allowance = DeliveryQueue.Allowance(count: 0, resumes: allowance.count > 0 ? now : allowance.resumes)
            return
        }
        endpoints[index].origin?.line = part
        origins[part].join(index, of: origin.domain, at: now)
    }

    private mutating func leaveLine(_ index: Int) {
        guard let origin = endpoints[index].origin, let line = origin.line else { return }
        endpoints[index].origin?.line = nil
        origins[line].leave(index, of: origin.domain)
    }

    // MARK: Answers

    /// Records a push service's answer. Returns whether the service is paused from now on because of its refusals.
    ///
    /// - Parameters:
    ///   - endpointHash: of the subscription's endpoint.
    ///   - address: where the answer came from; nil without one.
    ///   - time: the duration of the post.
    mutating func noteAnswer(
        _ answer: WebPushAnswer, endpointHash: Int, from address: IPAddress?, after time: Duration, at index: Int, now: Timestamp
    ) -> Bool {
        if let address { move(index, to: address.site, now: now) }
        if answer == .accepted { endpoints[index].origin?.standing.accepted(at: now) }
        endpoints[index].origin?.standing.answered(after: answer == .unanswered ? nil : time, isAccepted: answer == .accepted)
        guard answer.isRefusal else { return false }
        return endpoints[index].origin?.standing.refused(endpoint: endpointHash, at: now) ?? false
    }

    /// Records push services that accepted messages before this process started, or messages of other nodes.
    mutating func acceptedBefore(_ services: some Sequence<WebPushOrigin>, now: Timestamp) {
        for service in services {
            if let index = origins.indices[service] {
                if endpoints[index].origin?.standing.acceptedBefore(at: now) == true { changed(index) }
                continue
            }
            let memory = origins.memory.entry(of: service)
            var standing = memory?.standing ?? OriginStanding(origins.configuration.standing)
            guard standing.acceptedBefore(at: now) else { continue }
            origins.memory.set(
                OriginMemory.Entry(
                    standing: standing, breaker: memory?.breaker ?? makeQueue().breaker, lastNumber: memory?.lastNumber ?? 0,
                    address: memory?.address), of: service, now: now)
        }
    }
}

extension DeliveryTable.Endpoint {
    /// Whether nothing is posted now: no endpoint takes the deliveries, the breaker is open, or the push service is paused.
    func isUnavailable(at now: Timestamp) -> Bool {
        !canPost || queue.breaker.isOpen(at: now) || origin?.standing.isPaused(at: now) ?? false
    }
}
