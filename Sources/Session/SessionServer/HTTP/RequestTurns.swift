import Core
import RateLimits
import SessionProtocol

/// Requests waiting for a thread. Client networks take turns by the CPU time of their requests, and so do the connections of a network: a client that
/// sends many or large requests delays only itself. A value without I/O.
struct RequestTurns<Request: Sendable>: Sendable {
    struct Limits: Hashable, Sendable {
        /// Waiting requests of a network.
        var networkCount = 512
        /// Waiting requests of all networks.
        var totalCount = 4_096
        /// The CPU time that a turn pays for, in microseconds.
        var quantum = 10_000
        /// Larger bodies have the price of this size: a body with subscriptions is not larger.
        var byteLimit = 128 << 10
    }

    /// The size of the smallest signed entry of a body.
    private static var signedByteCount: Int { 384 }

    private let limits: Limits
    /// An element for each request in ``lines``, without the request.
    private var networks: DeficitTurns<SenderNetwork, Void>
    private var lines: [SenderNetwork: DeficitTurns<RequestSender, (request: Request, deadline: Instant)>] = [:]

    init(limits: Limits = Limits()) {
        self.limits = limits
        networks = DeficitTurns(quantum: limits.quantum, costLimit: Self.price(byteCount: limits.byteLimit))
    }

    var count: Int { networks.count }

    /// The CPU time of the most costly body of this size, in microseconds: one with as many signatures as it has room for.
    private static func price(byteCount: Int) -> Int {
        WorkKind.onionRequest.cpuMicroseconds + WorkKind.checkSignature.cpuMicroseconds * (1 + byteCount / signedByteCount)
    }

    /// - Parameter deadline: the time after which it is not begun.
    /// - Returns: false if too many requests wait.
    mutating func append(_ request: Request, from client: RequestSender, byteCount: Int, deadline: Instant) -> Bool {
        guard networks.count < limits.totalCount, networks.count(of: client.network) < limits.networkCount else { return false }
        let cost = Self.price(byteCount: min(byteCount, limits.byteLimit))
        networks.append((), cost: cost, of: client.network)
        lines[client.network, default: DeficitTurns(quantum: limits.quantum, costLimit: .max)]
            .append((request, deadline), cost: cost, of: client)
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
