import Core

/// The deliveries of a device form a line: a doubly linked list sorted by id, of which only the first may be posted.
extension DeliveryQueue {
    /// Inserts a delivery by its id, nearly always at the end, and never before a delivery that was posted already.
    mutating func joinLine(
        _ id: Int64, of device: DeviceID, _ recipient: PushRecipient, isKnown: Bool, _ lastAccepted: Timestamp?
    ) {
        var line = lines[device] ?? Line(recipient: recipient)
        if line.count == 0 { line.recipient = recipient }
        if let lastAccepted { line.lastAccepted = max(line.lastAccepted, lastAccepted) }
        let previous = predecessor(of: id, in: line, of: device)
        let next = previous.map { deliveries[$0]?.next } ?? line.first
        deliveries[id]?.previous = previous
        deliveries[id]?.next = next
        if let previous { deliveries[previous]?.next = id } else { line.first = id }
        if let next {
            deliveries[next]?.previous = id
            line.lastInserted = id
        } else {
            line.last = id
        }
        line.count += 1
        expiring.joined(device, of: line.recipient, isKnown: isKnown)
        lines[device] = line
    }

    /// The neighbor before the place of a new delivery in a line. nil for the first place: then the release of the present first is undone.
    ///
    /// Deliveries moved with a device from another endpoint arrive in order of ids, so the search starts at the last insertion; otherwise at the
    /// beginning. It runs from both ends.
    private mutating func predecessor(of id: Int64, in line: Line, of device: DeviceID) -> Int64? {
        guard var later = line.last, later > id, let first = line.first else { return line.last }
        var earlier = first
        if let last = line.lastInserted, last < id, deliveries[last]?.device == device {
            earlier = last
        } else if first > id, deliveries[first]?.failureCount == 0, fresh.remove(first) || backlog.remove(first) || doubtful.remove(first) {
            deliveries[first]?.place = .held
            return nil
        }
        while let next = deliveries[earlier]?.next, next < id, let previous = deliveries[later]?.previous {
            guard previous > id else { return previous }
            (earlier, later) = (next, previous)
        }
        return earlier
    }

    mutating func leaveLine(_ delivery: Delivery) {
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
        if delivery.isAwaited || configuration.favorsRested, !isDoubtful(line), isNew(delivery) {
            deliveries[id]?.place = .fresh
            lastTurn += 1
            let lastAccepted = configuration.favorsRested ? line.lastAccepted : Timestamp(rawValue: .min)
            fresh.insert(id, key: Turn(lastAccepted: lastAccepted, number: lastTurn))
        } else {
            place(id, inBacklogAt: max(delivery.arrived, latest))
        }
    }

    /// Whether a request may still wait for an awaited delivery. With an order of turns, which other nodes' requests need too, deliveries keep theirs
    /// unless nothing can be posted.
    func isNew(_ delivery: Delivery) -> Bool {
        latest < delivery.arrived + configuration.awaitLimit || configuration.favorsRested && !breaker.isOpen(at: latest)
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
            if let id, lines[device]?.isSuspect == false, doubtful.remove(id) { place(id, inBacklogAt: latest) }
            while let one = id, let delivery = deliveries[one] {
                expiring.moveToKnown(one, expires: delivery.expires)
                id = delivery.next
            }
        }
    }

    /// Whether a post for a device may stay without an answer, or break gorush.
    func isDoubtful(_ line: Line) -> Bool {
        line.isSuspect || configuration.doubtsStrangers && !expiring.isKnown(line.recipient)
    }

    mutating func place(_ id: Int64, inBacklogAt due: Timestamp) {
        guard let line = deliveries[id].flatMap({ lines[$0.device] }) else { return }
        deliveries[id]?.place = .backlog
        if isDoubtful(line) { doubtful.insert(id, key: due) } else { backlog.insert(id, key: due) }
    }
}
