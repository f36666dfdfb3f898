import Core
import Waku

/// The selection of deliveries for a batch.
extension DeliveryQueue {
    /// Removes the deliveries of the next batch from the places where they wait.
    ///
    /// - Parameter isProbe: for a probe, doubtful deliveries are left out while others wait.
    mutating func nextIDs(limit: Int, isProbe: Bool, _ now: Timestamp, _ expired: inout [Int64]) -> [Int64] {
        let othersWait = !fresh.isEmpty || backlog.first.map { $0.key <= now } ?? false
        let skipsDoubtful = (isProbe || isDoubtfulPosted) && othersWait
        isDoubtfulPosted = false
        while let half = halves.popLast() {
            let ids = takeHalf(half, now, &expired)
            if ids.count > limit { addHalf(ids[limit...]) }
            if !ids.isEmpty { return Array(ids.prefix(limit)) }
        }
        if !skipsDoubtful, mayPostDoubtful, let (due, id) = doubtful.first, due <= min(now, backlog.first?.key ?? now) {
            isDoubtfulPosted = true
            doubtful.remove(id)
            expiring.remove(id)
            return [id]
        }
        var limit = limit
        var ids: [Int64] = []
        var group: Int64?
        var isBacklogNext = fresh.isEmpty || !isBacklogServed
        isBacklogServed = isBacklogNext
        while ids.count < limit {
            let old = isBacklogNext ? popDue(beside: ids.count, limit: &limit, now) : nil
            isBacklogNext = true
            if let old { ids.append(old) }
            let new = ids.count < limit ? fresh.popFirst() : nil
            if let new {
                ids.append(new)
                group = deliveries[new]?.group
            }
            if old == nil, new == nil { break }
        }
        // The rest of a group joins its first deliveries: they are one notification, so the post hardly takes longer.
        while ids.count < configuration.maximumBatchCount, let group, let next = fresh.first, deliveries[next.id]?.group == group {
            fresh.remove(next.id)
            ids.append(next.id)
        }
        for id in ids { expiring.remove(id) }
        return ids
    }

    /// The first new delivery, if it may be a probe although the breaker is open.
    var earlyProbe: Int64? {
        guard let id = fresh.first?.id, let device = deliveries[id]?.device else { return nil }
        return breaker.admitsEarlyProbe(for: suspect(device)) ? id : nil
    }

    /// Removes ``earlyProbe`` from the places where it waits.
    mutating func takeEarlyProbe() -> [Int64] {
        guard let id = earlyProbe else { return [] }
        fresh.remove(id)
        expiring.remove(id)
        isDoubtfulPosted = false
        return [id]
    }

    /// Returns deliveries from a batch that is not sent yet to the backlog, at the head of their device's line. This does not count as a failure.
    ///
    /// - Parameter due: the time until which each delivery waits.
    mutating func postpone(_ due: [Int64: Timestamp], of batchID: UInt64) {
        for (id, due) in due {
            guard let delivery = deliveries[id], case .inFlight(batchID) = delivery.place else { continue }
            posts[batchID]?.devices.removeAll { $0 == delivery.device }
            lines[delivery.device]?.isPosting = false
            place(id, inBacklogAt: due)
            mayExpire(id)
        }
    }

    /// Whether a doubtful delivery may take a place for a post: it may hold it for long.
    var mayPostDoubtful: Bool {
        posts.values.count(where: \.isDoubtful) < max(1, configuration.maximumBatchesInFlight / 2)
    }

    private mutating func takeHalf(_ half: Half, _ now: Timestamp, _ expired: inout [Int64]) -> [Int64] {
        var ids: [Int64] = []
        for id in half.deliveries {
            guard let delivery = deliveries[id], case .halved(half.number) = delivery.place else { continue }
            if delivery.expires <= now {
                remove(id)
                expired.append(id)
            } else {
                ids.append(id)
            }
        }
        return ids
    }

    /// - Parameter limit: lowered to the batch size that this delivery allows.
    private mutating func popDue(beside count: Int, limit: inout Int, _ now: Timestamp) -> Int64? {
        guard let (due, id) = backlog.first, due <= now, let delivery = deliveries[id] else { return nil }
        let batchLimit = max(1, configuration.maximumBatchCount >> min(delivery.failureCount, 30))
        guard count < batchLimit else { return nil }
        limit = min(limit, batchLimit)
        return backlog.popFirst()
    }

    mutating func addHalf(_ ids: ArraySlice<Int64>) {
        guard !ids.isEmpty else { return }
        lastNumber += 1
        let half = Half(number: lastNumber, deliveries: Array(ids))
        for id in ids { deliveries[id]?.place = .halved(half.number) }
        halves.append(half)
    }
}
