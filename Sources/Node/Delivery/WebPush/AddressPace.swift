import Core

/// The pace of posts to one address, in virtual time: names of several push services may lead to the same server.
///
///     free ──(the allowance is used up)──▶ turns: each service waits for a turn of its own, in order ──(the last turn has come)──▶ free
///
/// A service has at most one turn that is still to come, so that of several with long queues each gets the same share.
struct AddressPace: Sendable {
    /// Beyond this number of posts in flight to an address, each of its services has at most one.
    static let sharedInFlightLimit = 32

    private let rate: Double
    private let burst: Double
    /// The allowance at `refilled`.
    private var tokens: Double
    /// The time of the last turn, while there are turns to come.
    private var refilled: Timestamp
    /// The posts in flight, of all services.
    var inFlight = 0
    /// The services with deliveries.
    var serviceCount = 0

    /// - Parameters:
    ///   - rate: posts a second.
    ///   - burst: the allowance of an address without posts.
    init(rate: Double, burst: Double, now: Timestamp) {
        (self.rate, self.burst) = (rate, burst)
        tokens = burst
        refilled = now
    }

    /// The number of posts that a service may send now, and when there will be more.
    ///
    /// - Parameters:
    ///   - turn: the service's turn, which this sets if it must wait.
    ///   - ownInFlight: the service's posts in flight.
    mutating func allowance(turn: inout Timestamp?, ownInFlight: Int, at now: Timestamp) -> DeliveryQueue.Allowance {
        // The end of one of its own posts lets it look again.
        guard inFlight < Self.sharedInFlightLimit || ownInFlight == 0 else { return DeliveryQueue.Allowance(count: 0) }
        let room = max(1, Self.sharedInFlightLimit - inFlight)
        if let turn {
            return turn <= now ? DeliveryQueue.Allowance(count: 1, resumes: now) : DeliveryQueue.Allowance(count: 0, resumes: turn)
        }
        refill(at: now)
        if refilled <= now, tokens >= 1 {
            return DeliveryQueue.Allowance(count: min(room, Int(tokens)), resumes: now + step(for: 1))
        }
        let next = max(refilled, now) + step(for: max(0, 1 - tokens))
        (turn, refilled, tokens) = (next, next, 0)
        return DeliveryQueue.Allowance(count: 0, resumes: next)
    }

    /// Takes posts that went out from the allowance; the first uses the service's turn.
    mutating func posted(_ count: Int, turn: inout Timestamp?, at now: Timestamp) {
        refill(at: now)
        tokens -= Double(turn == nil ? count : count - 1)
        turn = nil
    }

    /// Whether it need not be remembered: it would be the same if made anew.
    mutating func isForgettable(at now: Timestamp) -> Bool {
        refill(at: now)
        return tokens >= burst
    }

    private mutating func refill(at now: Timestamp) {
        guard now > refilled else { return }
        tokens = min(burst, tokens + now.since(refilled) / .seconds(1) * rate)
        refilled = now
    }

    /// The time in which the allowance grows by `tokens`. The remainder of a token may be lost to rounding.
    private func step(for tokens: Double) -> Duration { .nanoseconds(Int64(tokens / rate * 1e9) + 1) }
}

/// The paces of the addresses of all push services with deliveries, and of others while there is room.
struct AddressPaces {
    private static let memoryCapacity = 10_000

    private var paces: [IPAddress: AddressPace] = [:]
    private var memory = GenerationalCache<IPAddress, AddressPace>(capacity: memoryCapacity)

    subscript(address: IPAddress) -> AddressPace? { paces[address] }

    /// Counts a service with its posts in flight.
    mutating func join(_ address: IPAddress, inFlight: Int, standing: OriginStanding.Configuration, now: Timestamp) {
        var pace = paces[address] ?? memory.value(of: address) ?? AddressPace(rate: standing.rate, burst: standing.burst, now: now)
        pace.serviceCount += 1
        pace.inFlight += inFlight
        paces[address] = pace
    }

    mutating func leave(_ address: IPAddress, inFlight: Int, now: Timestamp) {
        guard var pace = paces[address] else { return }
        pace.serviceCount -= 1
        pace.inFlight -= inFlight
        guard pace.serviceCount == 0 else {
            paces[address] = pace
            return
        }
        paces[address] = nil
        if pace.isForgettable(at: now) { memory.remove(address) } else { memory.set(pace, of: address) }
    }

    mutating func addInFlight(_ count: Int, at address: IPAddress) { paces[address]?.inFlight += count }

    /// See ``AddressPace/allowance(turn:ownInFlight:at:)``; nil for an address without services.
    mutating func allowance(
        of address: IPAddress, turn: inout Timestamp?, ownInFlight: Int, at now: Timestamp
    ) -> DeliveryQueue.Allowance? {
        paces[address]?.allowance(turn: &turn, ownInFlight: ownInFlight, at: now)
    }

    mutating func posted(_ count: Int, to address: IPAddress, turn: inout Timestamp?, at now: Timestamp) {
        paces[address]?.posted(count, turn: &turn, at: now)
    }

    var count: Int { paces.count }
}
