package import Core
import DequeModule
package import NodeMetrics
import Waku

/// The outcome of a delivery, as reported to the request that waits for it.
package enum DeliveryOutcome: Hashable, Sendable {
    /// gorush accepted the notification.
    case accepted
    /// Not accepted within the wait limit, or given up.
    case failed
    /// The device is no longer registered.
    case unregistered
    /// gorush accepted the notification and called the device's token dead, so the device is no longer registered.
    case ended

    package var isAccepted: Bool { self == .accepted || self == .ended }
}

/// The deliveries that one request waits for; their outcomes are reported together.
package struct AwaitedDeliveries: Sendable {
    package struct Results: Sendable {
        /// The outcome of each delivery.
        package let outcomes: [DeliveryID: DeliveryOutcome]
        /// The request did not wait: gorush is known to be unavailable.
        package let isImmediate: Bool
    }

    let deliveries: Set<DeliveryID>
    /// The time at which the requesting message arrived.
    let received: ContinuousClock.Instant?
    /// Of the requesting message; nil when it is not traced.
    let trace: MessageTrace?
    let completion: @Sendable (Results) -> Void

    /// - Parameters:
    ///   - deliveries: at least one, in the outbox or accepted.
    ///   - received: the time at which the requesting message arrived, so that time spent in the store counts as waiting. nil: now.
    ///   - trace: of the requesting message.
    ///   - completion: called once, on any thread; it must return quickly.
    package init(
        _ deliveries: Set<DeliveryID>, receivedAt received: ContinuousClock.Instant? = nil, trace: MessageTrace? = nil,
        completion: @escaping @Sendable (Results) -> Void
    ) {
        self.deliveries = deliveries
        self.received = received
        self.trace = trace
        self.completion = completion
    }
}

/// The requests that wait for deliveries, as a value: outcomes and time go in, completed requests come out.
struct AwaitedDeliveryTable {
    private struct Entry {
        let awaited: AwaitedDeliveries
        var outcomes: [DeliveryID: DeliveryOutcome]
    }

    private var entries: [Int: Entry] = [:]
    private var byDelivery: [DeliveryID: [Int]] = [:]
    /// Sorted by time. A request that completes early keeps its entry until its deadline.
    private var deadlines: Deque<(time: Timestamp, id: Int)> = []
    private var nextID = 0

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// The deliveries that requests wait for.
    var deliveries: some Collection<DeliveryID> { byDelivery.keys }

    /// The earliest deadline, possibly of a request that is already complete; nil without deadlines.
    var nextDeadline: Timestamp? { deadlines.first?.time }

    /// - Parameters:
    ///   - awaited: at least one of its deliveries has no known outcome.
    ///   - deadline: usually not before any deadline added earlier.
    mutating func add(_ awaited: AwaitedDeliveries, known outcomes: [DeliveryID: DeliveryOutcome] = [:], deadline: Timestamp) {
        defer { nextID += 1 }
        for delivery in awaited.deliveries where outcomes[delivery] == nil { byDelivery[delivery, default: []].append(nextID) }
        entries[nextID] = Entry(awaited: awaited, outcomes: outcomes)
        var place = deadlines.count
        while place > 0, deadlines[place - 1].time > deadline { place -= 1 }
        deadlines.insert((deadline, nextID), at: place)
    }

    /// Records the outcome of a delivery and returns the requests that it completes.
    mutating func resolve(_ delivery: DeliveryID, as outcome: DeliveryOutcome) -> [Completed] {
        var completed: [Completed] = []
        for id in byDelivery.removeValue(forKey: delivery) ?? [] {
            guard let entry = entries[id] else { continue }
            entries[id]?.outcomes[delivery] = outcome
            if entry.outcomes.count + 1 == entry.awaited.deliveries.count, let done = end(id) { completed.append(done) }
        }
        return completed
    }

    /// Ends the requests whose deadline has passed; their open deliveries are reported as failed.
    mutating func end(before now: Timestamp) -> [Completed] {
        var completed: [Completed] = []
        while let (time, id) = deadlines.first, time <= now {
            deadlines.removeFirst()
            if let done = end(id) { completed.append(done) }
        }
        return completed
    }

    /// nil when the request is already complete.
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

        func notify() {
            if let trace = awaited.trace, outcomes.values.contains(.failed) { trace.fail("notification not accepted in time") }
            awaited.completion(AwaitedDeliveries.Results(outcomes: outcomes, isImmediate: isImmediate))
        }
    }
}
