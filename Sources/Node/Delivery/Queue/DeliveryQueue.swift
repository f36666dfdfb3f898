package import Core
import Waku

/// Decides which notifications are posted to gorush, and when. Ids, time and outcomes go in, batches come out. Its owner does the I/O and loads the
/// contents only when a batch is posted, so that a backlog needs little memory.
///
///     add ─▶ held ──(first of its device)──▶ fresh ───(a post is free)───▶ in flight ──(accepted)─────────────▶ accepted
///                           │                  │                            ▲  ▲ │ │ └──(refused, alone)───────▶ dropped
///                           │        (no request waits by now)              │  │ │ └────(refused, with others)─▶ halved ─┐
///                           │                  ▼                            │  │ └──(failed)──┐                          │
///                           └──(not awaited)─▶ backlog ──(a post is free)───┘  └──────────────┼────(a post is free)──────┘
///                                              ▲                                              │
///                                              └──────────────(after a pause)─────────────────┘
///
/// Deliveries that are not in flight may expire, or be evicted when new ones are added to a full queue: see ``EvictionOrder``. `remove` takes a delivery
/// out at any stage; one in flight then gets no resolution.
///
/// - **Order.** The deliveries of a device form a line, sorted by id. Only the first of a line is posted, so that no two are in flight at once; while
///   it is retried, only the deliveries of its own device wait.
/// - **Turns.** A device has one turn at a time: the next delivery of its line goes behind those of all devices that wait already. So a device with
///   many deliveries does not delay those with few, and among many devices with long lines each is posted to in turn.
/// - With enough of both, half of a batch are fresh deliveries and half come from the backlog: neither has to wait for the other. Batches begin with
///   either in turns.
/// - At a push service, which is posted to at a limited pace, fresh deliveries of the recipient that was posted to longest ago go first: devices that
///   somebody has notified all the time delay only those that were notified even later. There the backlog has retries only.
/// - After each failure a delivery goes into a smaller batch, in the end alone. After an unclear one its device is a suspect until a post
///   works. Deliveries of suspects are doubtful, and at a push service those of strangers: they are posted alone, in every second post at most while
///   others wait, and in half of the posts in flight at most. So one that breaks gorush, or is never answered, soon affects no others.
/// - Halves go out before other deliveries, the latest first, which keeps their number small.
/// - A delivery that its endpoint can't take, such as one that is too long, is dropped without a post.
/// - A delivery in flight is not posted again before its post has ended, however long that takes: without an answer its outcome is unknown.
/// - A delivery that turns out not to be allowed yet returns from its batch to the backlog until a given time: see `postpone`.
/// - ``PostPace`` decides how many notifications go into a post, and how many posts go out while one is overdue; ``CircuitBreaker`` decides whether
///   anything goes out at all.
///
/// Times must not go back: the driver adds monotonic time to the system time at its start. Each call takes logarithmic time for each delivery that it
/// names.
package struct DeliveryQueue: Sendable {
    enum Place {
        /// Behind another delivery of its device.
        case held
        case fresh
        case backlog
        case inFlight(UInt64)
        /// Part of the half with this number.
        case halved(UInt64)
    }

    struct Delivery {
        let device: DeviceID
        let expires: Timestamp
        let arrived: Timestamp
        /// Whether a request waits for its outcome.
        let isAwaited: Bool
        /// Fresh deliveries of one group go out together.
        let group: Int64?
        /// The number of its failures.
        var failureCount = 0
        var place = Place.held
        /// Its neighbors in the line of its device.
        var previous: Int64?
        var next: Int64?
    }

    /// The deliveries of a device, by their ids.
    struct Line {
        /// The push address of the device when the line began.
        var recipient: PushRecipient
        /// When a delivery for the recipient was last accepted; the earliest time if that is unknown.
        var lastAccepted = Timestamp(rawValue: .min)
        var first: Int64?
        var last: Int64?
        /// The last delivery that was inserted before others; it may have left the line since.
        var lastInserted: Int64?
        var count = 0
        /// Whether a delivery of the line is in flight; that delivery may have been removed since.
        var isPosting = false
        /// Whether the last post of one of its deliveries ended with ``PostOutcome/unclear(retryAfter:)``: the device may be the cause.
        var isSuspect = false
    }

    struct Half {
        let number: UInt64
        let deliveries: [Int64]
    }

    /// How many devices of a recipient are searched for the oldest delivery to evict: a recipient may have very many devices.
    private static let comparedDevices = 16

    struct Post {
        let batch: Batch
        var devices: [DeviceID]
        let isDoubtful: Bool
    }

    let configuration: Configuration
    private var generator: any RandomNumberGenerator & Sendable

    var deliveries: [Int64: Delivery] = [:]
    var lines: [DeviceID: Line] = [:]
    /// When a fresh delivery is posted.
    struct Turn: Comparable {
        /// See ``Configuration/favorsRested``.
        let lastAccepted: Timestamp
        let number: UInt64

        static func < (one: Self, other: Self) -> Bool { (one.lastAccepted, one.number) < (other.lastAccepted, other.number) }
    }

    var fresh = IndexedHeap<Int64, Turn>()
    /// The last turn that was given.
    var lastTurn: UInt64 = 0
    /// The latest time of a call.
    var latest = Timestamp(rawValue: .min)
    /// Keyed by due time.
    var backlog = IndexedHeap<Int64, Timestamp>()
    /// The doubtful deliveries that wait, keyed by due time: see ``isDoubtful(_:)``.
    var doubtful = IndexedHeap<Int64, Timestamp>()
    var halves: [Half] = []
    /// All deliveries neither in flight nor in a half, by expiry, and those that are evicted next.
    var expiring = EvictionOrder()
    private var evicted: [Int64] = []
    var posts: [UInt64: Post] = [:]
    var lastNumber: UInt64 = 0
    /// Whether the last batch began with a delivery from the backlog.
    var isBacklogServed = false
    /// Whether the last post was of a doubtful delivery.
    var isDoubtfulPosted = false
    private var isDraining = false
    /// Limits from outside the queue; nil for none.
    var allowance: Allowance?
    package internal(set) var breaker: CircuitBreaker
    var pace: PostPace

    package init(
        configuration: Configuration = Configuration(), generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.configuration = configuration
        self.generator = generator
        breaker = CircuitBreaker(configuration: configuration.breaker)
        pace = PostPace(configuration: configuration)
    }

    /// The number of deliveries in the queue, including those in flight.
    package var count: Int { deliveries.count }
    package var batchesInFlight: Int { posts.count }
    /// Deliveries whose post has not ended.
    package var deliveriesInFlight: some Sequence<Int64> { posts.values.lazy.flatMap(\.batch.deliveries) }
    /// Devices of the posts that have not ended, including those of deliveries removed since.
    package var devicesInFlight: some Sequence<DeviceID> { posts.values.lazy.flatMap(\.devices) }
    /// Whether a delivery is in the queue, in flight or not.
    package func contains(_ id: Int64) -> Bool { deliveries[id] != nil }
    func isInFlight(_ id: Int64) -> Bool {
        if case .inFlight = deliveries[id]?.place { true } else { false }
    }
    /// nil when the delivery is not in the queue.
    package func device(of id: Int64) -> DeviceID? { deliveries[id]?.device }
    /// Whether the queue is draining and all posts have ended.
    package var isDrained: Bool { isDraining && posts.isEmpty }

    /// Adds a delivery. One that is in the queue already stays unchanged.
    ///
    /// - Parameters:
    ///   - id: higher ones are newer.
    ///   - recipient: the push address of the device; nil if it is unknown.
    ///   - isKnown: whether gorush has accepted a notification for the recipient.
    ///   - lastAccepted: when it last did; nil if that is unknown.
    ///   - expires: the time at which it is given up.
    ///   - isAwaited: whether a request waits for its outcome.
    ///   - group: fresh deliveries of one group with consecutive ids go out together.
    ///   - isInherited: whether it was in the outbox before this process or node had to post it. Only others displace deliveries from a full queue.
    ///   - now: the present time, by the queue's clock.
    package mutating func add(
        _ id: Int64, device: DeviceID, recipient: PushRecipient? = nil, isKnown: Bool = false, lastAccepted: Timestamp? = nil,
        expires: Timestamp, isAwaited: Bool = true, group: Int64? = nil, isInherited: Bool = false, now: Timestamp
    ) {
        latest = max(latest, now)
        guard deliveries[id] == nil else { return }
        let former = deliveries.count
        deliveries[id] = Delivery(device: device, expires: expires, arrived: now, isAwaited: isAwaited, group: group)
        joinLine(id, of: device, recipient ?? PushRecipient(device), isKnown: isKnown, lastAccepted)
        mayExpire(id)
        releaseFirst(of: device)
        // Inherited deliveries may be more than the limit: the others do not make them more, and displace one each.
        if !isInherited, deliveries.count > max(configuration.limit, former) { evictOne() }
    }

    /// Removes a delivery that is no longer needed. If it is in flight, the outcome of its batch no longer applies to it.
    package mutating func remove(_ id: Int64) {
        guard let delivery = deliveries[id] else { return }
        leaveLine(delivery)
        deliveries[id] = nil
        fresh.remove(id)
        backlog.remove(id)
        doubtful.remove(id)
        expiring.remove(id)
        releaseFirst(of: delivery.device)
    }

    /// Evicts a delivery that is not in flight: see ``EvictionOrder``.
    mutating func evictOne() {
        // The queues of push services share a limit, of which one has a part.
        let (devices, otherwise) = expiring.candidates(limit: min(configuration.limit, deliveries.count))
        guard let id = devices.lazy.compactMap(oldestWaiting).prefix(Self.comparedDevices).min() ?? otherwise else { return }
        remove(id)
        evicted.append(id)
    }

    /// Stops posting; posts in flight can finish.
    package mutating func drain() {
        isDraining = true
    }

    /// Returns the actions that are due. Call it after every `add` and `finished`, and at ``nextWake(now:)``.
    package mutating func actions(now: Timestamp) -> [Action] {
        latest = max(latest, now)
        var expired: [Int64] = []
        while let (expires, id) = expiring.first, expires <= now {
            remove(id)
            expired.append(id)
        }
        while let id = fresh.first?.id, let delivery = deliveries[id], !isNew(delivery) {
            fresh.remove(id)
            place(id, inBacklogAt: delivery.arrived)
        }
        var actions: [Action] = []
        pace.advance(to: now)
        while mayPost, isBatchReady(now: now) {
            let limit = pace.batchLimit(at: now)
            let ids =
                switch breaker.admission(at: now) {
                case .posts: nextIDs(limit: limit, isProbe: false, now, &expired)
                case .probe: nextIDs(limit: min(limit, configuration.probeBatchCount), isProbe: true, now, &expired)
                case .nothing: takeEarlyProbe()
                }
            guard !ids.isEmpty else { break }
            let batch = post(ids)
            breaker.began(probe: batch.id)
            actions.append(.post(batch))
        }
        if !expired.isEmpty { actions.insert(.expire(expired), at: 0) }
        if !evicted.isEmpty {
            actions.insert(.evict(evicted), at: 0)
            evicted = []
        }
        return actions
    }

    /// The next time at which an action can be due if nothing is added or finished before; nil for never.
    package func nextWake(now: Timestamp) -> Timestamp? {
        if !evicted.isEmpty { return now }
        var wake = [expiring.first?.key, pace.nextChange].compactMap(\.self).min()
        if mayPostWithoutAllowance, mayPost || allowance?.resumes != nil, var ready = readyTime(now: now) {
            if !mayPost, let resumes = allowance?.resumes { ready = max(ready, resumes) }
            let resume: Timestamp? =
                switch breaker.state {
                case .closed: ready
                case .open(let until, _): earlyProbe == nil ? max(ready, until) : ready
                case .halfOpen: nil
                }
            wake = [wake, resume].compactMap(\.self).min()
        }
        return wake.map { max($0, now) }
    }

    /// Records that the contents of a batch are loaded and its request leaves now.
    ///
    /// - Parameter count: the number of its deliveries in the request.
    package mutating func sent(_ batchID: UInt64, count: Int, now: Timestamp) {
        pace.sent(batchID, count: count, at: now)
    }

    /// Records that the request of a batch has ended. Storing its result before ``finished(_:outcome:except:now:)`` may be slow; this does not make
    /// gorush count as slow.
    package mutating func answered(_ batchID: UInt64, outcome: Outcome, now: Timestamp) {
        pace.ended(batchID, outcome, at: now)
    }

    /// Ends a batch and returns a resolution for each of its deliveries still in the queue; none for a batch that is not in flight.
    ///
    /// - Parameter notAccepted: deliveries that gorush did not accept though it accepted the batch: they are retried.
    package mutating func finished(
        _ batchID: UInt64, outcome: Outcome, except notAccepted: Set<Int64> = [], now: Timestamp
    ) -> [Resolution] {
        latest = max(latest, now)
        guard let post = posts.removeValue(forKey: batchID) else { return [] }
        pace.ended(batchID, outcome, at: now)
        switch outcome {
        case .accepted: breaker.worked(for: post.devices.compactMap { lines[$0]?.recipient })
        case .refused: breaker.worked()
        case .notPosted, .unpostable: breaker.endedWithoutEvidence(batchID, at: now)
        case .failed(let retryAfter): failed(batchID, retryAfter: retryAfter, suspects: [], now)
        case .unclear: failed(batchID, retryAfter: nil, suspects: suspects(in: post), now)
        }
        let ids = post.batch.deliveries.filter { id in
            if case .inFlight(batchID) = deliveries[id]?.place { true } else { false }
        }
        let resolutions = resolve(ids, outcome, notAccepted, wasAlone: post.batch.deliveries.count == 1, now)
        for device in post.devices {
            lines[device]?.isPosting = false
            releaseFirst(of: device)
        }
        return resolutions
    }

    private mutating func resolve(
        _ ids: [Int64], _ outcome: Outcome, _ notAccepted: Set<Int64>, wasAlone: Bool, _ now: Timestamp
    ) -> [Resolution] {
        switch outcome {
        case .accepted:
            return ids.map { id in
                if notAccepted.contains(id) {
                    retry(id, after: nil, now: now)
                    return .retrying(id)
                }
                if let device = deliveries[id]?.device {
                    lines[device]?.isSuspect = false
                    lines[device]?.lastAccepted = now
                }
                remove(id)
                return .accepted(id)
            }
        case .refused where wasAlone, .unpostable:
            for id in ids { remove(id) }
            return ids.map(Resolution.dropped)
        case .refused:
            let middle = (ids.count + 1) / 2
            addHalf(ids[middle...])
            addHalf(ids[..<middle])
        case .failed(let retryAfter):
            for id in ids { retry(id, after: retryAfter, now: now) }
        case .unclear(let retryAfter):
            for id in ids {
                if let device = deliveries[id]?.device { lines[device]?.isSuspect = true }
                retry(id, after: retryAfter, now: now)
            }
        case .notPosted:
            for id in ids { retry(id, after: nil, now: now) }
        }
        return ids.map(Resolution.retrying)
    }

    private mutating func failed(_ batchID: UInt64, retryAfter: Duration?, suspects: Set<Suspect>, _ now: Timestamp) {
        // Of posts that began together, the first failure counts. At a push service every second post may be a stranger's, who would hide the others.
        let latest = configuration.doubtsStrangers && suspects == [.strangers] ? batchID - 1 : lastNumber
        breaker.failed(batchID, latest: latest, retryAfter: retryAfter, suspects: suspects, at: now, using: &generator)
    }

    /// Recipients for which nothing was ever accepted count as one: anybody can register them.
    private func suspects(in post: Post) -> Set<Suspect> {
        Set(post.devices.map(suspect))
    }

    func suspect(_ device: DeviceID) -> Suspect {
        guard let line = lines[device] else { return .strangers }
        // At a push service, which nearly always works for most, one that goes on failing is as a stranger, unless it worked lately.
        let isKnown = expiring.isKnown(line.recipient) && !(configuration.doubtsStrangers && line.isSuspect)
        return isKnown || breaker.hasWorked(for: line.recipient) ? .known(line.recipient) : .strangers
    }

    // MARK: Batches

    private var mayPost: Bool { mayPostWithoutAllowance && allowance.map { $0.count > 0 } ?? true }

    private var mayPostWithoutAllowance: Bool {
        !isDraining && posts.count < configuration.maximumBatchesInFlight && pace.admitsPost
    }

    /// Whether enough deliveries wait for a post, or they have waited long enough.
    private func isBatchReady(now: Timestamp) -> Bool {
        readyTime(now: now).map { $0 <= now } ?? false
    }

    /// The time at which a batch is ready; nil when nothing waits.
    private func readyTime(now: Timestamp) -> Timestamp? {
        if !halves.isEmpty || fresh.count >= pace.batchLimit(at: now) { return now }
        let arrived = fresh.first.flatMap { deliveries[$0.id]?.arrived }
        let first = [arrived, backlog.first?.key].compactMap(\.self).min()
        let gathered = first.map { posts.isEmpty ? $0 : $0 + configuration.gathering }
        return [gathered, mayPostDoubtful ? doubtful.first?.key : nil].compactMap(\.self).min()
    }

    private mutating func post(_ ids: [Int64]) -> Batch {
        lastNumber += 1
        allowance?.count -= 1
        let batch = Batch(id: lastNumber, deliveries: ids)
        var devices: [DeviceID] = []
        devices.reserveCapacity(ids.count)
        for id in ids {
            guard let device = deliveries[id]?.device else { continue }
            deliveries[id]?.place = .inFlight(batch.id)
            lines[device]?.isPosting = true
            devices.append(device)
        }
        posts[batch.id] = Post(batch: batch, devices: devices, isDoubtful: isDoubtfulPosted)
        pace.began()
        return batch
    }

    private mutating func retry(_ id: Int64, after retryAfter: Duration?, now: Timestamp) {
        guard var delivery = deliveries[id] else { return }
        delivery.failureCount += 1
        let backoff = configuration.backoff.delay(afterFailures: delivery.failureCount, jitter: .random(in: 0...1, using: &generator))
        let pause = max(backoff, min(retryAfter ?? .zero, configuration.longestRetryAfter))
        deliveries[id] = delivery
        place(id, inBacklogAt: now + pause)
        mayExpire(id)
    }
}
