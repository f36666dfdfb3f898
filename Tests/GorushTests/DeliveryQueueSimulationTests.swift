import Gorush
import Testing
import Waku

/// Random runs against a model that knows where each delivery must be.
struct DeliveryQueueSimulationTests {
    private enum Place: Equatable {
        case waiting
        case inFlight(UInt64)
        case resolved
    }

    @Test(arguments: UInt64(1)...8)
    func everyDeliveryIsResolvedOnce(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        var queue = DeliveryQueue(generator: SplitMix(seed: seed &+ 1000))
        var now = Timestamp(rawValue: 0)
        var places: [Int64: Place] = [:]
        var poisoned: Set<Int64> = []
        var posted: [UInt64: DeliveryQueue.Batch] = [:]
        var nextID: Int64 = 1

        for step in 0..<4000 {
            now = now + .milliseconds(Int.random(in: 0...50, using: &generator))
            let isAdding = step < 2000
            if isAdding {
                for _ in 0..<Int.random(in: 0...5, using: &generator) {
                    queue.add(nextID, expires: now + .milliseconds(Int.random(in: 1...60_000, using: &generator)), now: now)
                    places[nextID] = .waiting
                    if Int.random(in: 0..<50, using: &generator) == 0 { poisoned.insert(nextID) }
                    nextID += 1
                }
            }
            if isAdding, Int.random(in: 0..<10, using: &generator) == 0, nextID > 1 {
                let id = Int64.random(in: 1..<nextID, using: &generator)
                queue.remove(id)
                if places[id] != nil { places[id] = .resolved }
            }
            for action in queue.actions(now: now) {
                switch action {
                case .expire(let ids):
                    for id in ids {
                        #expect(places[id] == .waiting)
                        places[id] = .resolved
                    }
                case .post(let batch):
                    try #require((1...100).contains(batch.deliveries.count))
                    try #require(posted.updateValue(batch, forKey: batch.id) == nil)
                    for id in batch.deliveries {
                        #expect(places[id] == .waiting)
                        places[id] = .inFlight(batch.id)
                    }
                }
            }
            #expect(posted.count <= 8)
            #expect(queue.batchesInFlight == posted.count)
            // Gorush is out of order for a while every now and then, and in the end works.
            let isDown = isAdding && (step / 200).isMultiple(of: 3)
            if Bool.random(using: &generator), let id = posted.keys.sorted().randomElement(using: &generator),
                let batch = posted.removeValue(forKey: id)
            {
                let outcome: DeliveryQueue.Outcome =
                    isDown
                    ? .failed(retryAfter: Bool.random(using: &generator) ? .seconds(2) : nil)
                    : batch.deliveries.contains(where: poisoned.contains) ? .refused : .accepted
                for resolution in queue.finished(id, outcome: outcome, now: now) {
                    switch resolution {
                    case .accepted(let delivery), .dropped(let delivery):
                        #expect(places[delivery] == .inFlight(id))
                        if case .dropped = resolution { #expect(poisoned.contains(delivery)) }
                        places[delivery] = .resolved
                    case .retrying(let delivery):
                        #expect(places[delivery] == .inFlight(id))
                        places[delivery] = .waiting
                    }
                }
            }
            if step.isMultiple(of: 100) { #expect(queue.count == places.values.count { $0 != .resolved }) }
        }
        #expect(places.values.allSatisfy { $0 == .resolved })
        #expect(queue.count == 0)
        #expect(queue.nextWake(now: now) == nil)
    }

    /// A hundred thousand that fail once: no call takes time by how many wait.
    @Test(.timeLimit(.minutes(1)))
    func aLargeBacklog() {
        var queue = DeliveryQueue(generator: SplitMix(seed: 3))
        var now = Timestamp(rawValue: 0)
        for id in Int64(0)..<100_000 { queue.add(id, expires: now + .seconds(86_400), now: now) }
        var failed: Set<Int64> = []
        var acceptedCount = 0
        while queue.count > 0 {
            now = max(queue.nextWake(now: now) ?? now, now)
            for case .post(let batch) in queue.actions(now: now) {
                let isNew = failed.count < 10_000 && !failed.contains(batch.deliveries[0])
                if isNew { failed.formUnion(batch.deliveries) }
                acceptedCount += queue.finished(batch.id, outcome: isNew ? .failed(retryAfter: nil) : .accepted, now: now).count {
                    if case .accepted = $0 { true } else { false }
                }
            }
        }
        #expect(acceptedCount == 100_000)
    }
}
