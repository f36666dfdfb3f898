import Core

/// The deliveries of a device form a line: a doubly linked list sorted by id, of which only the first may be posted.
extension DeliveryQueue {
    /// Inserts a delivery by its id, nearly always at the end, and never before a delivery that was posted already.
    mutating func joinLine(_ id: Int64, of device: DeviceID, _ recipient: PushRecipient, isKnown: Bool) {
        var line = lines[device] ?? Line(recipient: recipient)
        if line.count == 0 { line.recipient = recipient }
        var previous = line.last
        while let before = previous, before > id, let delivery = deliveries[before] {
            if before == line.first {
                guard delivery.failureCount == 0, fresh.remove(before) || backlog.remove(before) else { break }
                deliveries[before]?.place = .held
            }
            previous = delivery.previous
        }
        let next = previous.map { deliveries[$0]?.next } ?? line.first
        deliveries[id]?.previous = previous
        deliveries[id]?.next = next
        if let previous { deliveries[previous]?.next = id } else { line.first = id }
        if let next { deliveries[next]?.previous = id } else { line.last = id }
        line.count += 1
        expiring.joined(device, of: line.recipient, isKnown: isKnown)
        lines[device] = line
    }

    mutating func leaveLine(_ id: Int64, _ delivery: Delivery) {
        if let line = lines[delivery.device] {
            lines[delivery.device]?.count = line.count - 1
            expiring.left(delivery.device, of: line.recipient, isLast: line.count == 1)
        }
        if let previous = delivery.previous {
            deliveries[previous]?.next = delivery.next
        } else {
            lines[delivery.device]?.first = delivery.next
        }
        if let next = delivery.next {
            deliveries[next]?.previous = delivery.previous
        } else {
            lines[delivery.device]?.last = delivery.previous
        }
    }

    /// Releases the first delivery of a line for posting, unless it is released already or one of the line is in flight.
    mutating func releaseFirst(of device: DeviceID) {
        guard let line = lines[device], !line.isPosting else { return }
        guard let id = line.first, let delivery = deliveries[id] else {
            lines[device] = nil
            return
        }
        guard case .held = delivery.place else { return }
        if delivery.isAwaited, latest < delivery.arrived + configuration.awaitLimit {
            deliveries[id]?.place = .fresh
            lastTurn += 1
            fresh.insert(id, key: lastTurn)
        } else {
            place(id, inBacklogAt: max(delivery.arrived, latest))
        }
    }

    /// The oldest delivery of a device that is neither in flight nor about to be posted.
    func oldestWaiting(of device: DeviceID) -> Int64? {
        var id = lines[device]?.first
        while let one = id, let delivery = deliveries[one] {
            switch delivery.place {
            case .held, .fresh, .backlog: return one
            case .inFlight, .halved: id = delivery.next
            }
        }
        return nil
    }

    /// Removes the oldest deliveries of a device, except one in flight.
    mutating func takeWaiting(of device: DeviceID, limit: Int) -> [(id: Int64, expires: Timestamp)] {
        var taken: [(id: Int64, expires: Timestamp)] = []
        var next = lines[device]?.first
        while taken.count < limit, let id = next, let delivery = deliveries[id] {
            next = delivery.next
            if !isInFlight(id) { taken.append((id, delivery.expires)) }
        }
        // The first last, so that the others are not released one after the other.
        for (id, _) in taken.reversed() { remove(id) }
        return taken
    }

    /// Lets a delivery expire or be evicted, until it goes into a batch.
    mutating func mayExpire(_ id: Int64) {
        guard let delivery = deliveries[id], let recipient = lines[delivery.device]?.recipient else { return }
        expiring.insert(id, of: recipient, expires: delivery.expires)
    }

    /// Records that gorush accepted a notification for a recipient.
    mutating func becameKnown(_ recipient: PushRecipient) {
        guard expiring.becameKnown(recipient) else { return }
        for device in expiring.devices(of: recipient) {
            var id = lines[device]?.first
            while let one = id, let delivery = deliveries[one] {
                expiring.moveToKnown(one, expires: delivery.expires)
                id = delivery.next
            }
        }
    }

    mutating func place(_ id: Int64, inBacklogAt due: Timestamp) {
        deliveries[id]?.place = .backlog
        backlog.insert(id, key: due)
    }
}
