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
        var places: [WebPushOrigin: Int] = [:]
        var addresses = AddressPaces()
        var free: [Int] = []
        /// Places to look at in the next step.
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

    // MARK: Places

    mutating func place(of destination: Destination?, now: Timestamp) -> Int {
        switch destination {
        case nil: return unroutablePlace
        case .gorush(let index): return index
        case .webPush(let origin):
            if let place = origins.places[origin] { return place }
            let memory = origins.memory.entry(of: origin)
            var endpoint = Endpoint(queue: makeQueue())
            endpoint.origin = Origin(
                origin: origin, domain: origin.domain, standing: memory?.standing ?? OriginStanding(origins.configuration.standing))
            if let memory {
                endpoint.queue.breaker = memory.breaker
                endpoint.queue.lastNumber = memory.lastNumber
            }
            let place = origins.free.popLast() ?? endpoints.count
            if place == endpoints.count { endpoints.append(endpoint) } else { endpoints[place] = endpoint }
            origins.places[origin] = place
            if let address = memory?.address { move(place, to: address, now: now) }
            return place
        }
    }

    func destination(_ endpoint: Int) -> Destination {
        endpoints[endpoint].origin.map { .webPush($0.origin) } ?? .gorush(endpoint)
    }

    /// Records that a queue may have something to do. Does nothing for a gorush, whose queue is always looked at.
    mutating func changed(_ place: Int) {
        guard let origin = endpoints[place].origin else { return }
        let count = endpoints[place].queue.count
        if count != origin.count {
            origins.waitingCount += count - origin.count
            endpoints[place].origin?.count = count
        }
        let inFlight = endpoints[place].queue.batchesInFlight
        // A post to a push service has one delivery.
        let evictable = max(0, count - inFlight)
        origins.room.changed(place, at: origin.address, from: origin.evictableCount, to: evictable)
        endpoints[place].origin?.evictableCount = evictable
        if let address = origin.address, inFlight != origin.inFlight {
            origins.addresses.addInFlight(inFlight - origin.inFlight, at: address)
            endpoints[place].origin?.inFlight = inFlight
        }
        guard !origin.isChanged else { return }
        endpoints[place].origin?.isChanged = true
        origins.changed.append(place)
    }

    /// Counts a push service at another address, or at none.
    private mutating func move(_ place: Int, to address: IPAddress?, now: Timestamp) {
        guard let origin = endpoints[place].origin, origin.address != address else { return }
        if let former = origin.address { origins.addresses.leave(former, inFlight: origin.inFlight, now: now) }
        origins.room.changed(place, at: origin.address, from: origin.evictableCount, to: 0)
        origins.room.changed(place, at: address, from: 0, to: origin.evictableCount)
        let inFlight = address == nil ? 0 : endpoints[place].queue.batchesInFlight
        endpoints[place].origin?.address = address
        endpoints[place].origin?.turn = nil
        endpoints[place].origin?.inFlight = inFlight
        if let address { origins.addresses.join(address, inFlight: inFlight, standing: origins.configuration.standing, now: now) }
    }

    mutating func evictBeyondLimit() {
        while origins.waitingCount > origins.configuration.waitingLimit, let place = origins.room.loser {
            let count = endpoints[place].queue.count
            endpoints[place].queue.evictOne()
            guard endpoints[place].queue.count < count else { return }
            changed(place)
        }
    }

    private mutating func release(_ place: Int, now: Timestamp) {
        guard var origin = endpoints[place].origin else { return }
        leaveLine(place)
        let queue = endpoints[place].queue
        if queue.breaker.isClosed, origin.standing.isForgettable(at: now), origin.address == nil {
            origins.memory.remove(origin.origin)
        } else {
            let memory = OriginMemory.Entry(
                standing: origin.standing, breaker: queue.breaker, lastNumber: queue.lastNumber, address: origin.address)
            origins.memory.set(memory, of: origin.origin, now: now)
        }
        move(place, to: nil, now: now)
        origins.places[origin.origin] = nil
        origins.free.append(place)
        endpoints[place] = Endpoint(queue: makeQueue())
    }

    // MARK: Time

    mutating func originActions(now: Timestamp) -> [(endpoint: Int, action: DeliveryQueue.Action)] {
        while let (due, place) = origins.wakes.first, due <= now {
            origins.wakes.remove(place)
            changed(Int(place))
        }
        var actions: [(endpoint: Int, action: DeliveryQueue.Action)] = []
        var next = 0
        while next < origins.changed.count {
            let place = origins.changed[next]
            next += 1
            guard endpoints[place].origin != nil else { continue }
            actions += self.actions(at: place, now: now).map { (place, $0) }
        }
        origins.changed.removeAll(keepingCapacity: true)
        return actions
    }

    private mutating func actions(at place: Int, now: Timestamp) -> [DeliveryQueue.Action] {
        endpoints[place].origin?.isChanged = false
        guard let origin = endpoints[place].origin else { return [] }
        let part: OriginPlaces.Part = origin.standing.isResponsive(at: now) ? .responsive : .others
        if let line = origin.line, line != part { leaveLine(place) }
        let isTurnOver = isTurnOver(origin, part, now: now)
        let hasPlace = origin.open != nil || origins[part].hasRoom(for: origin.domain)
        let allowance = allowance(of: place, now: now)
        endpoints[place].queue.allowance = hasPlace && !isTurnOver ? allowance : DeliveryQueue.Allowance(count: 0)
        let actions = endpoints[place].queue.actions(now: now)
        let postCount = actions.count { if case .post = $0 { true } else { false } }
        if postCount > 0 {
            endpoints[place].origin?.standing.posted(postCount, at: now)
            if let origin = endpoints[place].origin, let address = origin.address {
                var turn = origin.turn
                origins.addresses.posted(postCount, to: address, turn: &turn, at: now)
                endpoints[place].origin?.turn = turn
            }
            if endpoints[place].origin?.open == nil {
                leaveLine(place)
                origins[part].open(origin.domain)
                endpoints[place].origin?.open = (now, part)
            }
        }
        changed(place, isChanged: false)
        let isIdle = endpoints[place].queue.batchesInFlight == 0
        if isIdle, endpoints[place].origin?.open != nil { close(place, now: now) }
        if !hasPlace || isIdle && isTurnOver { joinLine(place, part, allowance, now: now) }
        origins.wakes.remove(Int64(place))
        if endpoints[place].queue.count == 0, endpoints[place].referenceCount == 0, isIdle {
            release(place, now: now)
        } else if let wake = endpoints[place].queue.nextWake(now: now) {
            origins.wakes.insert(Int64(place), key: wake)
        }
        return actions
    }

    /// The posts that a push service's own pace and that of its address allow now.
    private mutating func allowance(of place: Int, now: Timestamp) -> DeliveryQueue.Allowance {
        let own = endpoints[place].origin?.standing.allowance(at: now) ?? DeliveryQueue.Allowance(count: 0)
        let (queue, inFlight) = (endpoints[place].queue, endpoints[place].queue.batchesInFlight)
        // A turn is for services with something to post.
        guard own.count > 0, queue.count > inFlight, queue.isBreakerReady(at: now), let origin = endpoints[place].origin else { return own }
        var turn = origin.turn
        guard let address = origin.address,
            let shared = origins.addresses.allowance(of: address, turn: &turn, ownInFlight: inFlight, at: now)
        else { return DeliveryQueue.Allowance(count: inFlight == 0 ? 1 : 0) }
        endpoints[place].origin?.turn = turn
        return DeliveryQueue.Allowance(
            count: min(own.count, shared.count),
            resumes: shared.count == 0 ? shared.resumes : [own.resumes, shared.resumes].compactMap(\.self).max())
    }

    /// Updates the counts of a queue that is being looked at.
    private mutating func changed(_ place: Int, isChanged: Bool) {
        endpoints[place].origin?.isChanged = true
        changed(place)
        endpoints[place].origin?.isChanged = isChanged
    }

    /// Whether an open service gives its place up as soon as its posts have ended: others wait for it, or it belongs to the other part.
    private func isTurnOver(_ origin: Origin, _ part: OriginPlaces.Part, now: Timestamp) -> Bool {
        guard let open = origin.open else { return false }
        if open.part != part { return part == .others || origins[part].hasRoom(for: origin.domain) }
        return open.since + origins.configuration.turn <= now && origins[part].isWanted(origin.domain)
    }

    private mutating func close(_ place: Int, now: Timestamp) {
        guard let origin = endpoints[place].origin, let open = origin.open else { return }
        endpoints[place].origin?.open = nil
        origins[open.part].close(origin.domain)
        while let next = origins[open.part].next() {
            endpoints[next].origin?.line = nil
            endpoints[next].origin?.open = (now, open.part)
            changed(next)
        }
    }

    private mutating func joinLine(_ place: Int, _ part: OriginPlaces.Part, _ allowance: DeliveryQueue.Allowance, now: Timestamp) {
        guard let origin = endpoints[place].origin, origin.open == nil, origin.line == nil, endpoints[place].queue.count > 0 else { return }
        guard !origins[part].hasRoom(for: origin.domain) else {
            // A place became free meanwhile.
            changed(place)
            return
        }
        guard allowance.count > 0, endpoints[place].queue.isBreakerReady(at: now) else {
            // It could not use a place: it asks again when it could.
            endpoints[place].queue.allowance = DeliveryQueue.Allowance(count: 0, resumes: allowance.count > 0 ? now : allowance.resumes)
            return
        }
        endpoints[place].origin?.line = part
        origins[part].join(place, of: origin.domain, at: now)
    }

    private mutating func leaveLine(_ place: Int) {
        guard let origin = endpoints[place].origin, let line = origin.line else { return }
        endpoints[place].origin?.line = nil
        origins[line].leave(place, of: origin.domain)
    }

    // MARK: Answers

    /// Records a push service's answer. Returns whether the service is paused from now on because of its refusals.
    ///
    /// - Parameters:
    ///   - endpointHash: of the subscription's endpoint.
    ///   - address: where the answer came from; nil without one.
    ///   - time: the duration of the post.
    mutating func noteAnswer(
        _ answer: WebPushAnswer, endpointHash: Int, from address: IPAddress?, after time: Duration, at place: Int, now: Timestamp
    ) -> Bool {
        if let address { move(place, to: address.site, now: now) }
        if answer == .accepted { endpoints[place].origin?.standing.accepted(at: now) }
        endpoints[place].origin?.standing.answered(after: answer == .unanswered ? nil : time, isAccepted: answer == .accepted)
        guard answer.isRefusal else { return false }
        return endpoints[place].origin?.standing.refused(endpoint: endpointHash, at: now) ?? false
    }

    /// Records push services that accepted messages before this process started, or messages of other nodes.
    mutating func acceptedBefore(_ services: some Sequence<WebPushOrigin>, now: Timestamp) {
        for service in services {
            if let place = origins.places[service] {
                if endpoints[place].origin?.standing.acceptedBefore(at: now) == true { changed(place) }
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

extension DeliveryQueue {
    /// Whether the breaker admits a post now or is closed.
    func isBreakerReady(at now: Timestamp) -> Bool { !breaker.isOpen(at: now) }
}
