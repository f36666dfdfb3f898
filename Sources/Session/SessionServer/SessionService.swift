import NIOSupport
import Delivery
import Dispatch
import NodeAPI
import HTTPService
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NodeMetrics
import Core
import SessionProtocol
import RateLimits
import Storage
import Synchronization

/// The running Session protocol: see ``SessionPush``.
///
///     subscription   HTTP or an onion request ──▶ SessionResponder ──▶ RequestPreparation: SubscriptionForm, SignatureVerifier (in FairWorkers)
///                    ──▶ SubscriptionCommits ──▶ Subscriptions.apply: RequestBatch decides by SubscriptionRules and DevicePlaces ──▶ store
///                    ──▶ MonitoringChange ──▶ SharedMonitoring (several nodes) ──▶ SubscriptionMonitor, which drives a MonitorStateMachine
///                    ──▶ StoredEntries: MonitorEntry ──▶ OxenMQClient ──▶ `monitor.messages` at all storage servers of the swarm
///
///     message        `notify.message` ──▶ OxenMQClient ──▶ SubscriptionMonitor: NotifyMessage, if MonitorStateMachine accepts it ──▶ MessageQueue
///                    ──▶ SessionIntake: MessageRules ──▶ Subscriptions.prepare: a SessionPayload for each device, sealed
///                    ──▶ Subscriptions.notifyTogether ──▶ outbox ──▶ Delivery, by SessionDeliverySource: SessionContent ──▶ gorush
final class SessionService: RateLimitedService {
    private static let retryInterval = Duration.seconds(1)
    /// The time between two readings of damaged pages.
    private static let unreadableInterval = Duration.seconds(60)
    private static let expiryChunk = 500
    /// Number of row ids read at once.
    static let loadChunk: Int64 = 50_000
    /// Number of the store's readers that read all subscriptions: the others stay free for queries and deliveries.
    private static let loadReaders = 2
    /// Number of changed subscriptions read at once.
    private static let changeChunk = 200
    private static let knownCapacity = 100_000
    /// If more changed subscriptions are waiting, all subscriptions are read again.
    private static let changeLimit = 100_000

    let node: NodeServices
    let configuration: SessionPush.Configuration
    let limits: SessionLimits
    let monitor: any SubscriptionMonitoring
    /// Equal to `monitor` if several nodes share the accounts; nil otherwise.
    let sharedMonitoring: SharedMonitoring?
    private let shareChanged = WakeUpSignal()
    /// Names of subscriptions stored or changed by any node.
    private let changed = Mutex<Set<[UInt8]>>([])
    private let subscriptionsChanged = WakeUpSignal()
    /// Row ids and names that could not be read because of damage. They are read again each minute: a disk may have failed for a while.
    private let unreadable = Mutex<(ranges: Set<Range<Int64>>, names: Set<[UInt8]>)>(([], []))
    private let intake: SessionIntake
    let figures: ThrottledReading<SubscriptionFigures>
    /// Push services with a gorush endpoint.
    let services: Set<PushService>
    private let preparation: RequestPreparation
    private let workers: FairWorkers
    private let boundPort = Mutex<Int?>(nil)
    let proxyWatch = Mutex(ProxyWatch())
    var httpPort: Int? { boundPort.withLock(\.self) }
    var isListening: Bool { httpPort != nil || configuration.serve != nil }
    private let isPortFree = Atomic<Bool>(false)
    var hasPort: Bool { isPortFree.load(ordering: .acquiring) || isListening }

    init(_ configuration: SessionPush.Configuration, limits: SessionLimits, node: NodeServices) {
        self.configuration = configuration
        self.limits = limits
        self.node = node
        let routing = node.delivery.routing
        services = SessionChecks.services(of: routing, apnsTopic: configuration.apnsTopic)
        preparation = RequestPreparation(
            verifier: SignatureVerifier(sodium: configuration.sodium), services: services, webPushKeys: routing.webPushKeys,
            isWebPushChanging: { [cluster = node.cluster] in cluster.isDisputed("--web-push") },
            isWebPushUnknown: { [cluster = node.cluster] in cluster.isUnknownElsewhere("--web-push") })
        workers = FairWorkers(threadCount: configuration.serve == nil ? FairWorkers.processorCount : 0, timeout: configuration.storeTimeout)
        limits.attach(to: node)
        let store = node.store
        let now = node.now
        figures = ThrottledReading { try await store.fetch(Subscriptions.figures(at: now().seconds)) }
        let entries = StoredEntries(store: store, errors: node.errors)
        let source = SessionDeliverySource(store.sealer, apnsTopic: configuration.apnsTopic)
        intake = SessionIntake(node, source: source, limits: limits, sodium: configuration.sodium, ageLimit: configuration.ageLimit)
        let monitor = configuration.makeMonitor(entries, intake, node.logger) { [counters = node.counters] in counters.add($0) }
        sharedMonitoring = node.cluster.isShared ? SharedMonitoring(monitor) : nil
        self.monitor = sharedMonitoring ?? monitor
    }

    // MARK: Running

    func run() async throws {
        try await checkPort()
        guard await load() else { return }
        workers.start()
        defer { workers.stop() }
        try await withTaskCancellationHandler {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await self.runMonitor() }
                group.addTask {
                    try await self.serve()
                    // HTTP ends when the node begins to stop. Messages are taken until the node has handed its accounts over, and cancels this.
                    await Self.sleepUntilCancelled()
                }
                if let sharedMonitoring {
                    group.addTask { await self.followShare(sharedMonitoring) }
                    group.addTask { await self.offerAccounts(sharedMonitoring) }
                    group.addTask { await self.followChanges(sharedMonitoring) }
                }
                group.addTask {
                    while (try? await Task.sleep(for: Self.unreadableInterval)) != nil { await self.loadUnreadable() }
                }
                // A task that ends before it is cancelled has failed.
                try await group.next()
                group.cancelAll()
            }
        } onCancel: {
            intake.stop()
        }
    }

    /// For a task that has nothing more to do, because the first task that ends counts as failed.
    private static func sleepUntilCancelled() async {
        while (try? await Task.sleep(for: .seconds(3600))) != nil {}
    }

    private func runMonitor() async throws {
        do {
            try await monitor.run()
        } catch {
            throw NodeError(message: "storage servers can't be monitored: \(error)")
        }
    }

    /// Listens for a moment: the server begins only when all subscriptions are read, and other protocols need not wait for that.
    private func checkPort() async throws {
        guard configuration.serve == nil else { return }
        let address = configuration.httpAddress
        if let reason = await HTTPListener.obstacle(host: address.host, port: address.port) { throw listenFailure(reason) }
        isPortFree.store(true, ordering: .releasing)
    }

    private func listenFailure(_ reason: String) -> NodeError {
        intake.stop()
        return NodeError(message: "can't listen on \(configuration.httpAddress): \(reason) Choose another with --session-http")
    }

    private func serve() async throws {
        let address = configuration.httpAddress
        let commits = SubscriptionCommits(
            node, limits, services: services, monitor: monitor, timeout: configuration.storeTimeout,
            sodium: configuration.sodium, pendingByteLimit: configuration.pendingByteLimit)
        let responder = SessionResponder(
            preparation: preparation, workers: workers, commits: commits, onionKey: configuration.onionKey,
            bodies: BodyReader(byteCount: configuration.largeBodyByteCount), counters: node.counters,
            clients: ClientAddresses(proxies: configuration.proxies), limits: limits,
            noteRequest: { [self] isForwarded in proxyWatch.withLock { $0.request(isForwarded: isForwarded) } }, now: node.now)
        if let serve = configuration.serve { return try await serve { try await responder.answer($0, at: $1) } }
        @Sendable func endpoint(_ path: String) -> SessionEndpoint? { SessionEndpoint(rawValue: percentDecoded(path) ?? path) }
        let routing = MethodRouting(responder) { path in
            guard let endpoint = endpoint(path), responder.serves(endpoint) else { return [] }
            return HTTPRequest.Method(rawValue: endpoint.method).map { [$0] } ?? []
        } isOpenToPages: { path in
            // Browser apps.
            [.subscribe, .unsubscribe, .webPushKey].contains(endpoint(path))
        }
        // Any host name is allowed: clients and onion routers use various names, and no answer has contents that only a browser's user may see.
        let listener = HTTPListener(
            .hostname(address.host, port: address.port), limits: HTTPLimits(.session), hosts: nil, logger: node.logger)
        do {
            try await listener.run(routing) { [self] channel in
                if let port = channel.localAddress?.port { boundPort.withLock { $0 = port } }
                node.logger.info(
                    "Session's push server started",
                    metadata: [
                        "http": "\(address)", "onion-key": "\(configuration.onionKey.publicKeyHex)",
                        "services": "\(services.map(\.rawValue).sorted().joined(separator: ","))",
                    ])
            }
        } catch {
            throw listenFailure(ListenFailure.reason(error))
        }
    }

    func reloadFiles() { monitor.reloadServers() }

    // MARK: Loading

    /// Passes all subscriptions to the monitor. Retries while the store fails.
    ///
    /// - Returns: false if cancelled.
    private func load() async -> Bool {
        var isFirst = true
        while true {
            do throws(StoreError) {
                try await reload()
                return true
            } catch {
                if isFirst { node.logger.error("failed to read subscriptions", metadata: ["reason": "\(error.message)"]) }
                isFirst = false
                guard (try? await Task.sleep(for: Self.retryInterval)) != nil else { return false }
            }
        }
    }

    /// - Parameter take: called with chunks of the subscriptions, on any thread; nil passes them to the monitor.
    /// - Returns: The number of subscriptions.
    private func loadOnce(_ take: (@Sendable ([MonitoredSubscription]) -> Void)? = nil) async throws(StoreError) -> Int {
        let take = take ?? { [monitor] in monitor.load($0) }
        let ranges = try await node.store.fetch(Subscriptions.ranges(of: Self.loadChunk))
        let result = await withTaskGroup(of: Result<Int, StoreError>.self) { group in
            var left = ranges.makeIterator()
            func addNext() {
                if let range = left.next() { group.addTask { await self.load(range, take) } }
            }
            for _ in 0..<Self.loadReaders { addNext() }
            var count = 0
            for await result in group {
                guard case .success(let part) = result else { return result }
                count += part
                addNext()
            }
            return .success(count)
        }
        return try result.get()
    }

    private func load(
        _ range: Range<Int64>, _ take: @escaping @Sendable ([MonitoredSubscription]) -> Void
    ) async -> Result<Int, StoreError> {
        let subscriptions = Subscriptions(node.store.sealer)
        var count = 0
        do throws(StoreError) {
            let unreadable = try await node.store.readAroundDamage(in: range) { part throws(StoreError) in
                let found = try await node.store.onReader { store throws(StoreError) in
                    var found: [MonitoredSubscription] = []
                    try subscriptions.forEachAccount(in: store, part) { found.append($0) }
                    if !found.isEmpty { take(found) }
                    return found.count
                }
                count += found
            }
            self.unreadable.withLock { $0.ranges.formUnion(unreadable.map(\.part)) }
            node.errors.log(unreadable.map(\.error))
            return .success(count)
        } catch {
            return .failure(error)
        }
    }

    /// Reads all subscriptions again after another process imported or removed some. Removed ones are noticed at their next renewal.
    func reload() async throws(StoreError) {
        let count = try await loadOnce()
        if limits.limiter.countsRegistrations { limits.limiter.counted(registrations: count) }
    }

    /// Reads what could not be read before, in case the disk failed only for a while.
    func loadUnreadable() async {
        let former = unreadable.withLock { unreadable in
            defer { unreadable = ([], []) }
            return unreadable
        }
        for name in former.names { registeredElsewhere(name) }
        for range in former.ranges {
            if !Task.isCancelled, case .success = await load(range, { [monitor] in monitor.load($0) }) { continue }
            unreadable.withLock { _ = $0.ranges.insert(range) }
        }
    }

    // MARK: Several nodes

    func keyShareChanged(_ share: KeyShare) {
        sharedMonitoring?.share = share
        shareChanged.signal()
    }

    /// Announces whether this node can monitor accounts. While it can't, other nodes monitor its share. Runs until cancelled.
    private func offerAccounts(_ shared: SharedMonitoring) async {
        var offer = AccountOffer()
        repeat {
            let isConnected = monitor.figures.connectedServers > 0
            let others = (shared.share?.nodeCount ?? 0) - (offer.isOffered ? 1 : 0)
            guard offer.update(isConnected: isConnected, hasOthers: others > 0, at: .now) else { continue }
            node.cluster.offerKeys(offer.isOffered)
            if !offer.isOffered { node.logger.warning("no storage server connected for a minute; other nodes take over the accounts") }
        } while (try? await Task.sleep(for: Self.retryInterval)) != nil
    }

    /// After each change of the nodes, starts monitoring the accounts of this node's share, and stops monitoring the others after
    /// ``SessionPush/Configuration/handoverTime``. Runs until cancelled.
    private func followShare(_ shared: SharedMonitoring) async {
        var former: KeyShare?
        var handover: Task<Void, Never>?
        defer { handover?.cancel() }
        for await _ in shareChanged {
            while let share = shared.share, share != former, !Task.isCancelled {
                // Only the last of several changes in a row takes effect.
                handover?.cancel()
                do throws(StoreError) {
                    _ = try await loadOnce { [former] all in shared.take(all, from: former, to: share) }
                } catch {
                    node.logger.error("failed to read subscriptions", metadata: ["reason": "\(error.message)"])
                    try? await Task.sleep(for: Self.retryInterval)
                    continue
                }
                former = share
                handover = Task { [configuration] in
                    guard (try? await Task.sleep(for: configuration.handoverTime)) != nil else { return }
                    shared.releaseAccounts()
                }
            }
        }
    }

    func registeredElsewhere(_ name: [UInt8]) {
        let isFirst = changed.withLock { changed in
            defer { if changed.count <= Self.changeLimit { changed.insert(name) } }
            return changed.isEmpty
        }
        if isFirst { subscriptionsChanged.signal() }
    }

    /// Passes stored and changed subscriptions to the monitor, once per change. Runs until cancelled.
    private func followChanges(_ shared: SharedMonitoring) async {
        let subscriptions = Subscriptions(node.store.sealer)
        var known = GenerationalCache<SubscriptionID, [UInt8]>(capacity: Self.knownCapacity)
        var isFailing = false
        for await _ in subscriptionsChanged {
            while case let (names, isTooMany) = takeChanged(), !names.isEmpty, !Task.isCancelled {
                do throws(StoreError) {
                    if isTooMany {
                        try await reload()
                    } else {
                        let unreadable = try await node.store.readAroundDamage(in: names[...]) { part throws(StoreError) in
                            let found = try await node.store.fetch(subscriptions.named(Array(part), at: node.now().seconds))
                            let news = found.filter { known.value(of: $0.subscription.id) != $0.mark }
                            for one in news { known.set(one.mark, of: one.subscription.id) }
                            shared.changed(news.map(\.subscription))
                        }
                        self.unreadable.withLock { $0.names.formUnion(unreadable.lazy.flatMap(\.part)) }
                        node.errors.log(unreadable.map(\.error))
                    }
                    isFailing = false
                } catch {
                    if !isFailing { node.logger.error("failed to read changed subscriptions", metadata: ["reason": "\(error.message)"]) }
                    isFailing = true
                    changed.withLock { $0.formUnion(names) }
                    guard (try? await Task.sleep(for: Self.retryInterval)) != nil else { return }
                }
            }
        }
    }

    /// - Returns: A chunk of the names; or all of them if there were too many, in which case all subscriptions must be read.
    private func takeChanged() -> (names: [[UInt8]], isTooMany: Bool) {
        changed.withLock { changed in
            let isTooMany = changed.count > Self.changeLimit
            let names = isTooMany ? Array(changed) : Array(changed.prefix(Self.changeChunk))
            changed.subtract(names)
            return (names, isTooMany)
        }
    }

    // MARK: Maintenance

    var deliveryMemory: DeliveryMemory? {
        DeliveryMemory(
            duration: max(SubscriptionRetention.deliveries, configuration.ageLimit), rowLimit: SubscriptionRetention.deliveryLimit)
    }

    func prune(_ retention: Retention) async {
        let now = retention.now
        do throws(StoreError) {
            while !Task.isCancelled {
                let expired = try await node.store.commit(Subscriptions.expire(at: now.seconds, limit: Self.expiryChunk))
                for id in expired { monitor.apply(.remove(id)) }
                node.counters.add(.registrationExpired, expired.count)
                if expired.count < Self.expiryChunk { break }
            }
            if Task.isCancelled { return }
            try await Subscriptions.forgetNames(in: node.store, at: now.seconds)
            if Task.isCancelled { return }
            try await node.store.prune(
                Subscriptions.seenRows, before: now - max(SubscriptionRetention.deliveries, configuration.ageLimit), at: now,
                keeping: SubscriptionRetention.deliveryLimit, since: retention.fresh)
        } catch {
            node.logger.error("failed to remove expired subscriptions", metadata: ["reason": "\(error.message)"])
        }
        await count()
    }

    private func count() async {
        guard limits.limiter.countsRegistrations, let count = try? await node.store.fetch(Subscriptions.count(at: node.now().seconds))
        else { return }
        limits.limiter.counted(registrations: count)
    }

    func recount() async {
        await count()
        limits.endMinute(of: node)
        if proxyWatch.withLock({ $0.endMinute() }) {
            node.logger.warning("X-Forwarded-For from an untrusted reverse proxy; name its address in --session-proxy")
        }
    }
}

extension Counters {
    /// Counts an event of the monitor.
    fileprivate func add(_ event: MonitorEvent) {
        switch event {
        // Counted by SessionIntake.
        case .received: break
        case .dropped(let reason): add(.sessionDropped(reason))
        case .asked(let count): increment(.sessionAsked, by: Int64(count))
        case .ended: add(.sessionMonitorEnded)
        case .refused(let refusal): increment(.sessionRefused, refusal)
        case .connected: increment(.sessionConnections, SessionConnectionLabel.made)
        case .disconnected: increment(.sessionConnections, SessionConnectionLabel.ended)
        }
    }
}
