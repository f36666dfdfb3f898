import Core
import DequeModule
import NIOCore

/// The order in which the connections of an event loop have their bytes parsed, and how much is parsed. Client networks take turns, and so do the
/// connections of a network: a client that sends many small requests or chunks delays only its own network. A value without I/O.
///
/// Parsing takes at most half of the loop's time. The loop has further work, such as responses, and looks for new bytes and connections only when it has
/// none.
struct InputTurns<ID: Hashable & Sendable>: Sendable {
    /// The price of a request's head, which includes its response. Each other part of a request has the price 1.
    static var headCost: Int { 8 }

    /// The time that a price of 1 stands for: some 9,000 requests or 80,000 chunks a second.
    private static var unit: TimeAmount { .nanoseconds(12_500) }
    /// The parts that may be parsed ahead of the time that they stand for.
    private static var burst: TimeAmount { .milliseconds(5) }
    /// The shortest time until the next turn, for the other work of the loop.
    private static var pause: TimeAmount { .milliseconds(1) }

    /// A process that was suspended meanwhile did not parse for that time.
    private static var longestCharge: TimeAmount { .milliseconds(100) }

    /// When the time that the parsed parts stand for will have passed.
    private var paidAt = NIODeadline.distantPast
    private var lines: [AddressRange?: Deque<ID>] = [:]
    /// Networks with waiting connections, in the order of their turns.
    private var networks: Deque<AddressRange?> = []

    /// Whether a connection may go on without waiting for its turn.
    func admits(at now: NIODeadline) -> Bool { networks.isEmpty && hasCredit(at: now) }

    private func hasCredit(at now: NIODeadline) -> Bool { paidAt < now + Self.burst }

    /// Counts parsed parts.
    mutating func charge(_ cost: Int, from start: NIODeadline, to end: NIODeadline) {
        paidAt = max(paidAt, start) + max(Self.unit * cost, min((end - start) * 2, Self.longestCharge))
    }

    /// - Parameter network: nil for a connection without an IP address.
    mutating func append(_ id: ID, of network: AddressRange?) {
        if lines[network] == nil { networks.append(network) }
        lines[network, default: []].append(id)
    }

    /// Removes the next connection; nil if none waits or it is too early.
    mutating func popFirst(at now: NIODeadline) -> ID? {
        guard hasCredit(at: now), let network = networks.popFirst() else { return nil }
        let id = lines[network]?.popFirst()
        if lines[network]?.isEmpty ?? true { lines[network] = nil } else { networks.append(network) }
        return id
    }

    /// When to call ``popFirst(at:)`` again; nil if none waits.
    func nextTurn(after now: NIODeadline) -> NIODeadline? {
        networks.isEmpty ? nil : max(paidAt - Self.burst + .nanoseconds(1), now + Self.pause)
    }
}
