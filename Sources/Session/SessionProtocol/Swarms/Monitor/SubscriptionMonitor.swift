import Dispatch
package import Logging
import Core
import Synchronization

/// Monitors the messages of all subscriptions at storage servers: the driver of a ``MonitorStateMachine``, over ZeroMQ.
///
///     nodes file, oxend ──▶ map ──┐                         ┌──▶ OxenMQClient ──▶ storage servers
///     load, apply ────────────────┴──▶ state machine ───────┴──▶ RequestQueue ──▶ entries of the store ──▶ monitor.messages
///     notify.monitor_ended, errcode 6 ──▶ state machine
///     notify.message ──▶ parsed, checked by the state machine ──▶ MessageQueue ──▶ receiver
///
/// The state machine is protected by a lock that three kinds of threads take: the ZeroMQ client's thread, for events; the queue of this object, for
/// changes, maps and timers, which may take a second with a million subscriptions; and readers of ``figures``, only if the lock is free.
/// Nothing here blocks the cooperative pool.
package final class SubscriptionMonitor: Sendable {
    package enum Source: Hashable, Sendable {
        /// `--session-nodes`: the path of a file.
        case file(String)
        /// `--session-oxend`
        case oxend(OxenAddress)
    }

    package struct Configuration: Sendable {
        package var source: Source
        /// How long changes of subscriptions are collected before they are applied.
        var gathering: Duration = .milliseconds(20)
        /// Pause before the entries of subscriptions are read again after a failure.
        var retryInterval: Duration = .seconds(1)
        var swarms = MonitorStateMachine.Configuration()
        var connections = OxenMQClient.Configuration.storageServers
        var messages = MessageQueue.Limits()
        var drops = DropAllowance.Limits()
        var oxend = OxendMapStateMachine.Configuration()

        /// - Parameters:
        ///   - source: The source of the map of storage servers.
        ///   - renewal: `--session-renewal`.
        ///   - descriptors: The limit of open files of the process: `DescriptorLimit.current`, after it was raised. A connection uses one.
        package init(source: Source, renewal: Duration = .seconds(45 * 60), descriptors: Int = .max) {
            self.source = source
            swarms.renewal = renewal
            connections.maximumConnections = min(
                connections.maximumConnections, OxenMQClient.connectionCount(descriptors: descriptors))
        }
    }

    struct State {
        var monitor: MonitorStateMachine
        var allowances: [ConnectionNumber: DropAllowance] = [:]
        /// Connections paused because of their allowance, and the end of the pause.
        var throttled: [ConnectionNumber: Instant] = [:]
        /// Connections whose slow reading was logged.
        var slow: Set<ConnectionNumber> = []
        var hints = SwarmHintReader()
        var mapReceivedAt: Instant?
        /// Whether the last log message about connections said that servers are connected.
        var isConnectedLogged = false

        /// Forgets a connection that has ended.
        mutating func forget(_ number: ConnectionNumber) {
            (allowances[number], throttled[number]) = (nil, nil)
            slow.remove(number)
        }
    }

    let configuration: Configuration
    let connect: MakeOxenMQConnections
    let entries: any MonitorEntrySource
    let receiver: any SessionMessageReceiver
    let count: @Sendable (MonitorEvent) -> Void
    let logger: Logger

    let queue = DispatchQueue(label: "waku-push.session-monitor")
    let state: Mutex<State>
    let lastFigures = Mutex(Figures())
    /// Changes that have not reached the state machine yet, in order.
    let pending = Mutex<[MonitoringChange]>([])
    let requests = Mutex(RequestQueue())
    let requestAdded = WakeUpSignal()
    let messages: Mutex<MessageQueue>
    let messageAdded = WakeUpSignal()
    /// Present while ``run()`` runs.
    let client = Mutex<(any OxenMQConnections)?>(nil)
    let alarm: Alarm
    /// nil if the map comes from a file.
    let oxend: OxendMap?

    /// - Parameters:
    ///   - configuration: Source of the map, times and limits.
    ///   - connect: Makes the connections.
    ///   - entries: Reads the entries of subscriptions for requests to storage servers.
    ///   - logger: Logs connections and maps, never accounts.
    ///   - count: Called for every event, on any thread, even while locks are held: it must not block.
    package init(
        _ configuration: Configuration, connect: @escaping MakeOxenMQConnections, entries: any MonitorEntrySource,
        receiver: any SessionMessageReceiver, logger: Logger, count: @escaping @Sendable (MonitorEvent) -> Void
    ) {
        (self.configuration, self.connect, self.entries, self.receiver) = (configuration, connect, entries, receiver)
        (self.logger, self.count) = (logger, count)
        state = Mutex(State(monitor: MonitorStateMachine(configuration: configuration.swarms, seed: .random(in: .min ... .max))))
        messages = Mutex(MessageQueue(limits: configuration.messages))
        alarm = Alarm(on: queue)
        if case .oxend(let address) = configuration.source {
            oxend = OxendMap(address, connect: connect, configuration: configuration.oxend, queue: queue, logger: logger)
        } else {
            oxend = nil
        }
    }

    /// Monitors over ZeroMQ.
    ///
    /// - Parameter sodium: libsodium, loaded by ``Sodium/load()``.
    package convenience init(
        _ configuration: Configuration, sodium: Sodium, entries: any MonitorEntrySource,
        receiver: any SessionMessageReceiver, logger: Logger, count: @escaping @Sendable (MonitorEvent) -> Void
    ) {
        self.init(
            configuration, connect: { OxenMQClient(sodium: sodium, configuration: $0, handler: $1) }, entries: entries,
            receiver: receiver, logger: logger, count: count)
    }

    // MARK: Subscriptions

    /// Adds all subscriptions at the start, in one or several calls. Returns immediately; calls take effect in order.
    package func load(_ all: [MonitoredSubscription]) {
        queue.async {
            self.change { state, now in
                state.monitor.set(all, at: now)
            }
        }
    }

    /// Removes the subscriptions of accounts that other nodes monitor from now on. Takes effect in order with calls of ``load(_:)``.
    package func removeAccounts(where isAssignedElsewhere: @escaping @Sendable (AccountID) -> Bool) {
        queue.async {
            self.change { state, _ in state.monitor.removeAll(where: isAssignedElsewhere) }
        }
    }

    /// Carries out a change: asks all servers of the subscription's swarm within 20 ms, or about a minute later if it is renewed all the time.
    package func apply(_ change: MonitoringChange) {
        let isFirst = pending.withLock { pending in
            pending.append(change)
            return pending.count == 1
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(configuration.gathering / .milliseconds(1)))) { self.applyPending() }
    }

    private func applyPending() {
        let changes = pending.withLock { pending in
            defer { pending = [] }
            return pending
        }
        change { state, now in state.monitor.apply(changes, at: now) }
    }

    // MARK: The state machine

    /// Changes the state and performs the resulting actions. Actions are passed on under the lock, which keeps their order; none of them blocks.
    func change(_ body: (inout State, Instant) -> Void) {
        let wakeUp = state.withLock { state in
            body(&state, .now)
            // Before and after the run there is no client, and the actions wait.
            if let client = client.withLock({ $0 }) { perform(&state, client) }
            return state.monitor.nextWakeUp
        }
        alarm.set(to: wakeUp) { [weak self] in
            self?.change { state, now in state.monitor.advance(to: now) }
        }
    }

    private func perform(_ state: inout State, _ client: any OxenMQConnections) {
        for action in state.monitor.takeActions() {
            switch action {
            case .connect(let number, let server):
                client.connect(number, to: OxenAddress(endpoint: server.endpoint, serverKey: server.publicKey))
            case .close(let number):
                client.close(number)
                state.forget(number)
                count(.disconnected)
                forget(number)
            case .ask(let number, let tag, let ids):
                requests.withLock { $0.append(.init(connection: number, tag: tag, ids: ids)) }
                requestAdded.signal()
            case .requestMap:
                if let oxend {
                    oxend.want()
                } else {
                    logger.warning("swarm map of storage server differs; check that the nodes file is current")
                }
            }
        }
    }

    /// A connection has ended.
    func forget(_ number: ConnectionNumber) {
        requests.withLock { $0.removeAll(of: number) }
        messages.withLock { $0.forgetPause(of: number) }
    }
}

extension RequestTag {
    /// 8 bytes, big-endian.
    var bytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: rawValue >> (56 - 8 * UInt64($0))) } }

    /// nil unless there are 8 bytes.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == 8 else { return nil }
        self.init(rawValue: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }
}
