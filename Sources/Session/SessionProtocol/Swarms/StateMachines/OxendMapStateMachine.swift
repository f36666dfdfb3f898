import Core

/// Keeps the map of the network up to date from an oxend: decides when to connect, to request the list of service nodes, and to subscribe to blocks.
/// The list is requested after HELLO, after each block, when a storage server reports a different swarm, and at least every 10 minutes.
///
///     idle ──(pause over)──▶ connecting ──(HELLO)──▶ connected
///      ▲                          │                      │
///      └──(10, 30, 60, 120 s)─────┴──(failed, silent)────┘
struct OxendMapStateMachine: Sendable {
    struct Configuration: Hashable, Sendable {
        var interval: Duration = .seconds(600)
        let blockSubscription: Duration = .seconds(1800)
        /// Minimum time between two requests for the list: faster blocks are combined.
        var shortestInterval: Duration = .seconds(1)
        var connectTimeout: Duration = .seconds(30)
        var replyTimeout: Duration = .seconds(60)
        var pauses: [Duration] = [.seconds(10), .seconds(30), .seconds(60), .seconds(120)]
    }

    enum Action: Hashable, Sendable {
        /// Followed by ``connected(_:at:)`` or ``failed(_:at:)``.
        case connect(ConnectionNumber)
        case close(ConnectionNumber)
        /// `rpc.get_service_nodes`.
        case requestServers(ConnectionNumber, RequestTag)
        /// `sub.block`.
        case subscribeToBlocks(ConnectionNumber, RequestTag)
    }

    static let serversCommand = "rpc.get_service_nodes"
    /// The body of `rpc.get_service_nodes`.
    static let serversBody =
        #"{"active_only":true,"fields":{"pubkey_x25519":true,"public_ip":true,"storage_lmq_port":true,"swarm_id":true,"block_hash":true,"height":true}}"#
    static let blockCommand = "sub.block"
    static let blockNotice = "notify.block"

    private enum State: Sendable {
        case idle(retryAt: Instant)
        case connecting(ConnectionNumber, deadline: Instant)
        case connected(ConnectionNumber, Schedule)
    }

    private struct Schedule: Sendable {
        var servers: Repeated
        var blocks: Repeated
        var askedAt: Instant?
    }

    /// A request that is repeated.
    private struct Repeated: Sendable {
        var dueAt: Instant
        var outstanding: (tag: RequestTag, deadline: Instant)?

        var wakeUp: Instant { outstanding?.deadline ?? dueAt }
    }

    private let configuration: Configuration
    private var state: State
    private var failures = 0
    private var lastNumber: UInt64 = 0
    private var lastTag: UInt64 = 0
    private var actions: [Action] = []

    init(configuration: Configuration = Configuration(), at now: Instant) {
        self.configuration = configuration
        state = .idle(retryAt: now)
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    var isConnected: Bool {
        if case .connected = state { return true }
        return false
    }

    /// When to call ``advance(to:)`` next.
    var nextWakeUp: Instant {
        switch state {
        case .idle(let retryAt): retryAt
        case .connecting(_, let deadline): deadline
        case .connected(_, let schedule): min(schedule.servers.wakeUp, schedule.blocks.wakeUp)
        }
    }

    /// Performs the actions that are due.
    mutating func advance(to now: Instant) {
        switch state {
        case .idle(let retryAt):
            guard retryAt <= now else { return }
            lastNumber += 1
            let number = ConnectionNumber(rawValue: lastNumber)
            state = .connecting(number, deadline: now + configuration.connectTimeout)
            actions.append(.connect(number))
        case .connecting(let number, let deadline):
            if deadline <= now { close(number, at: now) }
        case .connected(let number, var schedule):
            let isSilent = [schedule.servers, schedule.blocks].contains { $0.outstanding.map { $0.deadline <= now } ?? false }
            guard !isSilent else { return close(number, at: now) }
            if let tag = request(&schedule.servers, every: configuration.interval, at: now) {
                schedule.askedAt = now
                actions.append(.requestServers(number, tag))
            }
            if let tag = request(&schedule.blocks, every: configuration.blockSubscription, at: now) {
                actions.append(.subscribeToBlocks(number, tag))
            }
            state = .connected(number, schedule)
        }
    }

    /// - Returns: nil unless the request is due.
    private mutating func request(_ repeated: inout Repeated, every interval: Duration, at now: Instant) -> RequestTag? {
        guard repeated.outstanding == nil, repeated.dueAt <= now else { return nil }
        lastTag += 1
        let tag = RequestTag(rawValue: lastTag)
        repeated = Repeated(dueAt: now + interval, outstanding: (tag, now + configuration.replyTimeout))
        return tag
    }

    /// HELLO was received.
    mutating func connected(_ number: ConnectionNumber, at now: Instant) {
        guard case .connecting(number, _) = state else { return }
        failures = 0
        state = .connected(number, Schedule(servers: Repeated(dueAt: now), blocks: Repeated(dueAt: now)))
        advance(to: now)
    }

    /// The connection failed or ended, or oxend sent BYE.
    mutating func failed(_ number: ConnectionNumber, at now: Instant) {
        switch state {
        case .connecting(number, _), .connected(number, _):
            failures += 1
            let pause = configuration.pauses.isEmpty ? .zero : configuration.pauses[min(failures, configuration.pauses.count) - 1]
            state = .idle(retryAt: now + pause)
        default: break
        }
    }

    private mutating func close(_ number: ConnectionNumber, at now: Instant) {
        actions.append(.close(number))
        failed(number, at: now)
    }

    /// A reply to a request was received: a list, an error, or the answer to `sub.block`.
    mutating func replied(_ tag: RequestTag, at now: Instant) {
        guard case .connected(let number, var schedule) = state else { return }
        if schedule.servers.outstanding?.tag == tag { schedule.servers.outstanding = nil }
        if schedule.blocks.outstanding?.tag == tag { schedule.blocks.outstanding = nil }
        state = .connected(number, schedule)
        advance(to: now)
    }

    /// Requests the list again: after `notify.block`, or when a storage server reports a different swarm.
    mutating func want(at now: Instant) {
        guard case .connected(let number, var schedule) = state else { return }
        let earliest = schedule.askedAt.map { max(now, $0 + configuration.shortestInterval) } ?? now
        schedule.servers.dueAt = min(schedule.servers.dueAt, earliest)
        state = .connected(number, schedule)
        advance(to: now)
    }
}
