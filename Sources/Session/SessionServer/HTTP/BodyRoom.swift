import DequeModule

/// The room for large request bodies, in bytes, divided by the networks of the clients. A value without I/O.
///
/// A network may hold a part of the room that remains free, so that a further network finds room for its bodies: with ``Limits/freeFactor`` 7, an
/// eighth of the room if it is the first. One network at a time may hold more, as much as remains free: the largest onion request needs it. Then ten
/// networks leave an eighth of the room.
///
///     body ──(room)────────────────────────▶ held ──▶ released
///      ├──(no room)──▶ waiting ──(room)──────▲
///      └──(its line is full, or it exceeds half of the room)──▶ refused
struct BodyRoom<Waiting: Sendable>: Sendable {
    enum Decision: Hashable, Sendable {
        case held
        case waiting
        case refused
    }

    struct Limits: Hashable, Sendable {
        /// Waiting bodies of a network. NIO has read the first 40 KiB of each.
        var networkCount = 64
        /// Waiting bodies of all networks.
        var totalCount = 256
        /// The free room stays at least this many times as large as the room of a network, except one.
        var freeFactor = 1
    }

    private let byteCount: Int
    private let limits: Limits
    private var held: [SenderNetwork: Int] = [:]
    private var heldByteCount = 0
    /// The waiting bodies of each network, in order. No line is empty.
    private var lines: [SenderNetwork: Deque<(waiting: Waiting, byteCount: Int)>] = [:]
    private var waitingCount = 0

    init(byteCount: Int, limits: Limits = Limits()) {
        self.byteCount = byteCount
        self.limits = limits
    }

    /// - Parameter waiting: kept if it must wait, until ``release(_:of:)`` returns it.
    mutating func take(_ count: Int, of network: SenderNetwork, _ waiting: Waiting) -> Decision {
        if lines[network] == nil, hasRoom(for: count, of: network) {
            hold(count, of: network)
            return .held
        }
        guard count <= byteCount / 2, lines[network]?.count ?? 0 < limits.networkCount, waitingCount < limits.totalCount else {
            return .refused
        }
        lines[network, default: []].append((waiting, count))
        waitingCount += 1
        return .waiting
    }

    /// Makes a body that is held larger. It cannot wait, because bodies that wait for each other would not end.
    ///
    /// - Returns: false if there is no room.
    mutating func grow(by count: Int, of network: SenderNetwork) -> Bool {
        guard hasRoom(for: count, of: network) else { return false }
        hold(count, of: network)
        return true
    }

    /// Releases a body that was held.
    ///
    /// - Returns: the waiting bodies that are held from now on.
    mutating func release(_ count: Int, of network: SenderNetwork) -> [Waiting] {
        let left = (held[network] ?? 0) - count
        held[network] = left > 0 ? left : nil
        heldByteCount -= count
        var admitted: [Waiting] = []
        while let next = next() { admitted.append(next) }
        return admitted
    }

    /// The first waiting body of the network that holds least, among those that have room.
    private mutating func next() -> Waiting? {
        let networks = lines.filter { network, line in hasRoom(for: line.first?.byteCount ?? 0, of: network) }.keys
        guard let network = networks.min(by: { held[$0] ?? 0 < held[$1] ?? 0 }), let first = lines[network]?.popFirst() else { return nil }
        if lines[network]?.isEmpty == true { lines[network] = nil }
        waitingCount -= 1
        hold(first.byteCount, of: network)
        return first.waiting
    }

    private func hasRoom(for count: Int, of network: SenderNetwork) -> Bool {
        let (all, free) = ((held[network] ?? 0) + count, byteCount - heldByteCount - count)
        guard all <= free else { return false }
        return all * limits.freeFactor <= free || held.allSatisfy { $0.key == network || $0.value <= byteCount / (1 + limits.freeFactor) }
    }

    private mutating func hold(_ count: Int, of network: SenderNetwork) {
        held[network, default: 0] += count
        heldByteCount += count
    }
}
