import Core
import SessionProtocol

/// Requests waiting for a thread. Client networks take turns by the cost of their requests, and so do the connections of a network: a client that
/// sends many or large requests delays only itself. A value without I/O.
struct RequestTurns<Request: Sendable>: Sendable {
    struct Limits: Hashable, Sendable {
        /// Waiting requests of a network.
        var networkCount = 512
        /// Waiting requests of all networks.
        var totalCount = 4_096
        /// The cost of a small request in bytes.
        var baseCost = 1_024
        /// The cost that a turn pays for.
        var quantum = 16 << 10
        /// The highest cost of a request: a body with subscriptions is not larger.
        var costLimit = 128 << 10
    }

    private struct Waiting: Sendable {
        let request: Request
        let deadline: Instant
    }

    private let limits: Limits
    /// An element for each request in ``lines``, without the request.
    private var networks: DeficitTurns<ClientNetwork, Void>
    private var lines: [ClientNetwork: DeficitTurns<HTTPClient, Waiting>] = [:]

    init(limits: Limits = Limits()) {
        self.limits = limits
        networks = DeficitTurns(quantum: limits.quantum, costLimit: limits.costLimit)
    }

    var count: Int { networks.count }

    /// - Parameters:
    ///   - request: a request.
    ///   - client: its sender.
    ///   - byteCount: the size of its body.
    ///   - deadline: the time after which it is not begun.
    /// - Returns: false if too many requests wait.
    mutating func append(_ request: Request, from client: HTTPClient, byteCount: Int, deadline: Instant) -> Bool {
        guard networks.count < limits.totalCount, networks.count(of: client.network) < limits.networkCount else { return false }
        let cost = limits.baseCost + min(byteCount, limits.costLimit)
        networks.append((), cost: cost, of: client.network)
        lines[client.network, default: DeficitTurns(quantum: limits.quantum, costLimit: limits.costLimit)]
            .append(Waiting(request: request, deadline: deadline), cost: cost, of: client)
        return true
    }

    /// Removes the next request; nil if none waits.
    mutating func popFirst(at now: Instant) -> (request: Request, isLate: Bool)? {
        while let network = networks.popFirst()?.payer {
            guard let waiting = lines[network]?.popFirst()?.element else { continue }
            if lines[network]?.isEmpty == true { lines[network] = nil }
            return (waiting.request, isLate: waiting.deadline <= now)
        }
        return nil
    }
}
