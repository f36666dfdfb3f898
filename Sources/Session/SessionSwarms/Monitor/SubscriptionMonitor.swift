import Dispatch
package import Logging
import Core
package import SessionProtocol
import Synchronization

/// Has storage servers report the messages of all subscriptions: carries out what a ``SwarmMonitor`` decides, over ZeroMQ.
///
///     nodes file, oxend ──▶ map ──┐                              ┌──▶ OxenMQClient ──▶ storage servers
///     load, set, remove ──────────┴──▶ SwarmMonitor ──▶ actions ─┴──▶ RequestQueue ──▶ entries of the store ──▶ monitor.messages
///     notify.monitor_ended, errcode 6 ──▶ SwarmMonitor
///     notify.message ──▶ parsed, checked against SwarmMonitor ──▶ MessageQueue ──▶ receiver
///
/// The state machine is behind a lock that three kinds of threads take: the ZeroMQ client's, for an event; the queue of this object, for changes,
/// maps and times, which with a million subscriptions may take a second; and, if it is free, those that read ``figures``. Nothing here
/// blocks the cooperative pool.
package final class SubscriptionMonitor: Sendable {
    package enum Source: Hashable, Sendable {
        /// `--session-nodes`: the path of a file.
        case file(String)
        /// `--session-oxend`
        case oxend(OxenAddress)
    }

    package struct Configuration: Sendable {
        package var source: Source
        /// Within which changes of subscriptions are gathered.
        var gathering: Duration = .milliseconds(20)
        /// Before the entries of subscriptions are read again, when they could not be.
        var retryInterval: Duration = .seconds(1)
        var swarms = SwarmMonitor.Configuration()
        var connections = OxenMQClient.Configuration()
        var messages = MessageQueue.Limits()
        var drops = DropAllowance.Limits()
        var oxend = OxendMapSource.Configuration()

        /// - Parameters:
        ///   - source: Where the map of storage servers comes from.
        ///   - renewal: `--session-renewal`.
        ///   - descriptors: How many files the process may have open: `DescriptorLimit.current`, after it was raised. A connection has four.
        package init(source: Source, renewal: Duration = .seconds(45 * 60), descriptors: Int = .max) {
            self.source = source
            swarms.renewal = renewal
            // Replies to larger requests would need larger parts of messages, which a hostile server could have us keep.
            swarms.maximumRequestByteCount = 500_000
            // A reply that refuses all entries names the servers of a swarm for each: some 4 KB.
            swarms.maximumRequestEntryCount = 500
            connections.maximumPartByteCount = 4 << 20
            connections.receiveQueue = 100
            connections.maximumConnections = min(
                connections.maximumConnections, OxenMQClient.connectionCount(descriptors: descriptors))
        }
    }

    struct State {
        var monitor: SwarmMonitor
        var allowances: [ConnectionNumber: DropAllowance] = [:]
        /// Connections that are not read because of their allowance, and until when.
        var throttled: [ConnectionNumber: Instant] = [:]
        /// Connections of which the log says so.
        var slow: Set<ConnectionNumber> = []
        var hints = SwarmHintReader()
        var mapReceivedAt: Instant?
        /// Whether the log says that servers are connected.
        var isConnectedLogged = false

        /// The connection has ended.
        mutating func forget(_ number: ConnectionNumber) {
            (allowances[number], throttled[number]) = (nil, nil)
            slow.remove(number)
        }
    }

    let configuration: Configuration
    let library: ZeroMQLibrary
    let entries: any MonitorEntrySource
    let receiver: any SessionMessageReceiver
    let count: @Sendable (MonitorEvent) -> Void
    let logger: Logger

    let queue = DispatchQueue(label: "waku-push.session-monitor")
    let state: Mutex<State>
    let lastFigures = Mutex(Figures())
    let pending = Mutex(PendingChanges())
    let requests = Mutex(RequestQueue())
    let requestAdded = WakeUpSignal()
    let messages: Mutex<MessageQueue>
    let messageAdded = WakeUpSignal()
    /// While ``run()`` runs.
    let client = Mutex<OxenMQClient?>(nil)
    let alarm: Alarm
    /// nil with a file.
    let oxend: OxendMap?

    /// - Parameters:
    ///   - configuration: Source of the map, times and limits.
    ///   - library: libzmq.
    ///   - entries: Reads subscriptions at the time at which storage servers are asked.
    ///   - receiver: Takes the messages that are accepted.
    ///   - logger: For connections and maps. It gets no account.
    ///   - count: Called for every event, on any thread, also while locks are held: it must not block.
    package init(
        _ configuration: Configuration, library: ZeroMQLibrary, entries: any MonitorEntrySource,
        receiver: any SessionMessageReceiver, logger: Logger, count: @escaping @Sendable (MonitorEvent) -> Void
    ) {
        (self.configuration, self.library, self.entries, self.receiver) = (configuration, library, entries, receiver)
        (self.logger, self.count) = (logger, count)
        state = Mutex(State(monitor: SwarmMonitor(configuration: configuration.swarms, seed: .random(in: .min ... .max))))
        messages = Mutex(MessageQueue(limits: configuration.messages))
        alarm = Alarm(on: queue)
        if case .oxend(let address) = configuration.source {
            oxend = OxendMap(address, library: library, configuration: configuration.oxend, queue: queue, logger: logger)
        } else {
            oxend = nil
        }
    }

    // MARK: Subscriptions

    /// At the start: all subscriptions, at once or in several calls. Returns at once; they take effect in the order of all calls.
    package func load(_ all: [MonitoredSubscription]) {
        queue.async {
            self.change { state, now in
                state.monitor.set(all, at: now)
            }
        }
    }

    /// The subscriptions of accounts that others monitor from now on. Takes effect in the order of all calls of ``load(_:)`` and this.
    package func unload(where isOthers: @escaping @Sendable (AccountID) -> Bool) {
        queue.async {
            self.change { state, _ in state.monitor.removeAll(where: isOthers) }
        }
    }

    /// A subscription was stored: all servers of its swarm are asked, at most 20 ms later.
    package func set(_ subscription: MonitoredSubscription) {
        gather { $0.set(subscription) }
    }

    /// A subscription is gone. Messages that storage servers still report for it are dropped.
    package func remove(_ id: SubscriptionID) {
        gather { $0.remove(id) }
    }

    private func gather(_ body: (inout PendingChanges) -> Void) {
        let isFirst = pending.withLock { pending in
            defer { body(&pending) }
            return pending.isEmpty
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(configuration.gathering / .milliseconds(1)))) { self.applyPending() }
    }

    private func applyPending() {
        let changes = pending.withLock { $0.take() }
        change { state, now in
            for change in changes {
                switch change {
                case .set(let all): state.monitor.set(all, at: now)
                case .remove(let ids): for id in ids { state.monitor.remove(id) }
                }
            }
        }
    }

    // MARK: The state machine

    /// Changes the state, and does what the state machine wants then. In order: the actions are passed on under the lock, none of which blocks.
    func change(_ body: (inout State, Instant) -> Void) {
        let wakeUp = state.withLock { state in
            body(&state, .now)
            // Without a client, before and after the run, they wait.
            if let client = client.withLock({ $0 }) { perform(&state, client) }
            return state.monitor.nextWakeUp
        }
        alarm.set(to: wakeUp) { [weak self] in
            self?.change { state, now in state.monitor.advance(to: now) }
        }
    }

    private func perform(_ state: inout State, _ client: OxenMQClient) {
        for action in state.monitor.takeActions() {
            switch action {
            case .connect(let number, let server):
                client.connect(.init(number), to: OxenAddress(endpoint: server.endpoint, serverKey: server.publicKey))
            case .close(let number):
                client.close(.init(number))
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
                    logger.warning("storage server has another map of swarms: is the nodes file current?")
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

extension OxenMQClient.Connection {
    init(_ number: ConnectionNumber) { self.init(rawValue: number.rawValue) }
}

extension ConnectionNumber {
    init(_ connection: OxenMQClient.Connection) { self.init(rawValue: connection.rawValue) }
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
