package import Core
import Waku

/// What became of a delivery, as far as whoever asked for it is told.
package enum DeliveryOutcome: Hashable, Sendable {
    /// gorush took it.
    case accepted
    /// Not within the time that is waited for it, or given up.
    case failed
    /// Its device is not registered any more.
    case unregistered
}

/// Deliveries that somebody waits for together.
package struct AwaitedDeliveries: Sendable {
    package struct Results: Sendable {
        /// Of each delivery.
        package let outcomes: [DeliveryID: DeliveryOutcome]
        /// Nothing was waited for: gorush is known to take nothing at present.
        package let isImmediate: Bool
    }

    let deliveries: Set<DeliveryID>
    /// When the message that asks for them came in.
    let received: ContinuousClock.Instant?
    let completion: @Sendable (Results) -> Void

    /// - Parameters:
    ///   - deliveries: at least one, in the outbox or accepted.
    ///   - received: when the message that asks for them came in: the time that the store took counts as waiting. nil: now.
    ///   - completion: called once, on any thread: it must be short.
    package init(
        _ deliveries: Set<DeliveryID>, receivedAt received: ContinuousClock.Instant? = nil,
        completion: @escaping @Sendable (Results) -> Void
    ) {
        self.deliveries = deliveries
        self.received = received
        self.completion = completion
    }
}

/// Those who wait for deliveries, as a value: outcomes and time come in, who needs to wait no longer goes out.
struct AwaitedDeliveryTable {
    private struct Entry {
        let awaited: AwaitedDeliveries
        var outcomes: [DeliveryID: DeliveryOutcome]
    }

    private var entries: [Int: Entry] = [:]
    private var byDelivery: [DeliveryID: [Int]] = [:]
    /// In the order of their deadlines, from the first that still counts on. Complete ones stay until their deadline.
    private var deadlines: [(time: Timestamp, id: Int)] = []
    private var firstDeadline = 0
    private var nextID = 0

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// Deliveries that somebody waits for.
    var deliveries: some Collection<DeliveryID> { byDelivery.keys }

    /// Of one that may be complete by now; nil for none.
    var nextDeadline: Timestamp? { firstDeadline < deadlines.count ? deadlines[firstDeadline].time : nil }

    /// - Parameters:
    ///   - awaited: of which at least one is without an outcome.
    ///   - outcomes: those that are known.
    ///   - deadline: in most cases not before that of any that was added earlier.
    mutating func add(_ awaited: AwaitedDeliveries, known outcomes: [DeliveryID: DeliveryOutcome] = [:], deadline: Timestamp) {
        defer { nextID += 1 }
        for delivery in awaited.deliveries where outcomes[delivery] == nil { byDelivery[delivery, default: []].append(nextID) }
        entries[nextID] = Entry(awaited: awaited, outcomes: outcomes)
        var place = deadlines.count
        while place > firstDeadline, deadlines[place - 1].time > deadline { place -= 1 }
        deadlines.insert((deadline, nextID), at: place)
    }

    /// A delivery ended. Returns those that are complete now.
    mutating func resolve(_ delivery: DeliveryID, as outcome: DeliveryOutcome) -> [Completed] {
        var completed: [Completed] = []
        for id in byDelivery.removeValue(forKey: delivery) ?? [] {
            guard let entry = entries[id] else { continue }
            entries[id]?.outcomes[delivery] = outcome
            if entry.outcomes.count + 1 == entry.awaited.deliveries.count, let done = end(id) { completed.append(done) }
        }
        return completed
    }

    /// Time is up for those with deadlines up to now: what is still open failed, as far as they are told.
    mutating func end(before now: Timestamp) -> [Completed] {
        var completed: [Completed] = []
        while firstDeadline < deadlines.count, deadlines[firstDeadline].time <= now {
            if let done = end(deadlines[firstDeadline].id) { completed.append(done) }
            firstDeadline += 1
        }
        // Moved to the front now and then, at no cost for each.
        if firstDeadline > 1000, firstDeadline * 2 > deadlines.count {
            deadlines.removeFirst(firstDeadline)
            firstDeadline = 0
        }
        return completed
    }

    /// nil when it is complete already.
    private mutating func end(_ id: Int) -> Completed? {
        guard let entry = entries.removeValue(forKey: id) else { return nil }
        var outcomes = entry.outcomes
        for delivery in entry.awaited.deliveries where outcomes[delivery] == nil {
            outcomes[delivery] = .failed
            byDelivery[delivery]?.removeAll { $0 == id }
            if byDelivery[delivery]?.isEmpty == true { byDelivery[delivery] = nil }
        }
        return Completed(awaited: entry.awaited, outcomes: outcomes)
    }

    struct Completed: Sendable {
        let awaited: AwaitedDeliveries
        let outcomes: [DeliveryID: DeliveryOutcome]
        var isImmediate = false

        func tell() {
            awaited.completion(AwaitedDeliveries.Results(outcomes: outcomes, isImmediate: isImmediate))
        }
    }
}
