import Core
import CurlClient
import DequeModule

/// The queues of push services. Each service has a queue, a pace, a breaker and limits of its own, so that none holds up another.
///
///     no deliveries ──(first delivery)──▶ waiting ──(a place is free)──▶ open, with posts in flight ──(posts ended)──▶ waiting or gone
///                                           ▲                                    │
///                                           └──(others wait and 10 s passed)─────┘
///
/// Services at one address share a pace too: see ``AddressPace``. Until a service's address is known, one post to it is in flight at a time.
///
/// At most ``Origins/Configuration/openLimit`` are open at once. A service without deliveries costs nothing: its breaker and its standing are
/// remembered while there is room. Only the queues that changed, or whose time has come, are looked at.
extension DeliveryTable {
    struct Origin {
        let origin: WebPushOrigin
        var standing: OriginStanding
        /// When it became open; nil when it is not.
        var openSince: Timestamp?
        /// Whether it is in the line for a place.
        var isInLine = false
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

        struct Memory {
            let standing: OriginStanding
            let breaker: CircuitBreaker
            let lastNumber: UInt64
            let address: IPAddress?
        }

        private static let memoryCapacity = 10_000

        let configuration: Configuration
        var places: [WebPushOrigin: Int] = [:]
        var addresses = AddressPaces()
        var free: [Int] = []
        /// Places to look at in the next step.
        var changed: [Int] = []
        var wakes = IndexedHeap<Timestamp>()
        var room = OriginRoom()
        var waitingCount = 0
        var openCount = 0
        var line: Deque<Int> = []
        var memory = GenerationalCache<WebPushOrigin, Memory>(capacity: memoryCapacity)

        init(_ configuration: Configuration) {
            self.configuration = configuration
        }

        var nextWake: Timestamp? { wakes.first?.key }
    }

    // MARK: Places

    mutating func place(of destination: Destination?, now: Timestamp) -> Int {
        switch destination {
        case nil: return unroutablePlace
        case .gorush(let index): return index
        case .webPush(let origin):
            if let place = origins.places[origin] { return place }
            let memory = origins.memory.value(of: origin)
            var endpoint = Endpoint(queue: makeQueue())
            endpoint.origin = Origin(origin: origin, standing: memory?.standing ?? OriginStanding(origins.configuration.standing))
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
        let queue = endpoints[place].queue
        if queue.breaker.isClosed, origin.standing.isForgettable(at: now), origin.address == nil {
            origins.memory.remove(origin.origin)
        } else {
            let memory = Origins.Memory(
                standing: origin.standing, breaker: queue.breaker, lastNumber: queue.lastNumber, address: origin.address)
            origins.memory.set(memory, of: origin.origin)
        }
        move(place, to: nil, now: now)
        origins.places[origin.origin] = nil
        origins.free.append(place)
        endpoints[place] = Endpoint(queue: DeliveryQueue())
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
        let isTurnOver = !origins.line.isEmpty && endpoints[place].origin?.openSince.map { $0 + origins.configuration.turn <= now } ?? false
        let hasPlace =
            endpoints[place].origin?.openSince != nil || origins.openCount < origins.configuration.openLimit && origins.line.isEmpty
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
            if endpoints[place].origin?.openSince == nil { open(place, now: now) }
        }
        changed(place, isChanged: false)
        let isIdle = endpoints[place].queue.batchesInFlight == 0
        if isIdle, endpoints[place].origin?.openSince != nil { close(place, now: now) }
        if !hasPlace || isIdle && isTurnOver { joinLine(place, allowance, now: now) }
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

    private mutating func open(_ place: Int, now: Timestamp) {
        endpoints[place].origin?.openSince = now
        origins.openCount += 1
    }

    /// Gives the place to the first in the line.
    private mutating func close(_ place: Int, now: Timestamp) {
        endpoints[place].origin?.openSince = nil
        origins.openCount -= 1
        while let next = origins.line.popFirst() {
            guard endpoints[next].origin?.isInLine == true else { continue }
            endpoints[next].origin?.isInLine = false
            open(next, now: now)
            changed(next)
            return
        }
    }

    private mutating func joinLine(_ place: Int, _ allowance: DeliveryQueue.Allowance, now: Timestamp) {
        guard let origin = endpoints[place].origin, origin.openSince == nil, !origin.isInLine, endpoints[place].queue.count > 0 else {
            return
        }
        guard !origins.line.isEmpty || origins.openCount >= origins.configuration.openLimit else {
            // A place became free meanwhile.
            changed(place)
            return
        }
        guard allowance.count > 0, endpoints[place].queue.isBreakerReady(at: now) else {
            // It could not use a place: it asks again when it could.
            endpoints[place].queue.allowance = DeliveryQueue.Allowance(count: 0, resumes: allowance.count > 0 ? now : allowance.resumes)
            return
        }
        endpoints[place].origin?.isInLine = true
        origins.line.append(place)
    }

    // MARK: Answers

    /// Records a push service's answer. Returns whether the service is paused from now on because of its refusals.
    ///
    /// - Parameters:
    ///   - endpointHash: of the subscription's endpoint.
    ///   - address: where the answer came from; nil without one.
    mutating func noteAnswer(
        _ answer: WebPushAnswer, endpointHash: Int, from address: IPAddress?, at place: Int, now: Timestamp
    ) -> Bool {
        if let address { move(place, to: address.site, now: now) }
        if answer == .accepted { endpoints[place].origin?.standing.accepted(at: now) }
        guard answer.isRefusal else { return false }
        return endpoints[place].origin?.standing.refused(endpoint: endpointHash, at: now) ?? false
    }

    // MARK: Figures

    func webPushFigures(now: Timestamp) -> WebPushFigures {
        var figures = WebPushFigures(waitingCount: origins.waitingCount)
        for place in origins.places.values {
            if endpoints[place].isUnavailable(at: now) {
                figures.unavailableCount += 1
            } else if endpoints[place].origin?.openSince != nil {
                figures.postingCount += 1
            } else {
                figures.otherCount += 1
            }
        }
        return figures
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

/// The push services with deliveries.
package struct WebPushFigures: Hashable, Sendable {
    package var waitingCount = 0
    package var postingCount = 0
    /// With a breaker that is open, or paused.
    package var unavailableCount = 0
    package var otherCount = 0
}
