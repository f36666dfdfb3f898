import NodeAPI
import Delivery
import Logging
import NodeMetrics
import Core
import StatusProtocol
import RateLimits
import StatusRules
import Storage
import Waku
import WakuCrypto

/// The running Status protocol: see ``StatusPush``.
struct StatusService: RateLimitedService {
    /// Tombstones of registrations that no one had asked for, if `registration-count` does not say how many are kept.
    private static let neverAskedLimit = 10_000_000
    /// Queries mark the registrations that they are about at this interval, together: then a query costs no commit.
    private static let askedInterval = Duration.seconds(10)
    private static let askedChunk = 1_000

    private let identities: [PublicKey]
    private let marks: ServerMarks
    let node: NodeServices
    private let configuration: StatusPush.Configuration
    private let topics: TopicTable
    private let topicKeys: TopicKeys
    private let precomputation: TopicKeyPrecomputation?
    let limits: StatusLimits
    private let asked = AskedRows()
    /// Of each identity.
    private let clients: [RecentClients]
    let receiver: any WakuReceiver
    private let figures: ThrottledReading<RegistrationFigures>

    /// - Throws: `StoreError`
    init(
        _ identity: PrivateKey, configuration: StatusPush.Configuration, topics: TopicTable, limits: StatusLimits,
        node: NodeServices
    ) throws {
        self.node = node
        self.configuration = configuration
        let keys = [identity] + configuration.otherIdentities
        identities = keys.map(\.publicKey)
        self.topics = topics
        self.limits = limits
        let store = node.store
        try topics.load(from: store)
        let marks = ServerMarks(known: try store.read(StoreIdentities.all()), identity: identity.publicKey)
        self.marks = marks
        limits.attach(to: node)
        // Creates the series, so that results that did not occur are shown as 0.
        for label in ReportLabel.allCases { node.counters.increment(.reports, label, by: 0) }
        if limits.limiter.countsRegistrations {
            limits.limiter.counted(registrations: try store.read(Registrations.countedRegistrations()))
        }
        topicKeys = TopicKeys(
            store: store, counters: node.counters, charge: { [now = node.now] in limits.charge(of: $0, at: now()) },
            displaced: { limits.limiter.displaced(.topicKeys, $0.standing) })
        precomputation = configuration.deriveAheadLimit.map {
            TopicKeyPrecomputation(
                store: store, counters: node.counters, limit: $0, isIdle: configuration.derivesAheadWhenIdle, logger: node.logger)
        }
        let marked = Set(keys.map(\.publicKey) + marks.known).compactMap(marks.mark)
        figures = ThrottledReading { try await store.fetch(Registrations.figures(by: marked)) }

        let registrations = Registrations(store.sealer, errors: node.errors)
        let versions = RecentVersions()
        clients = keys.map { _ in RecentClients() }
        let servers = zip(keys, clients).map { [asked] key, clients in
            let mark = marks.mark(of: key.publicKey)
            let rules = RegistrationRules(
                identity: key, server: mark, isIdempotent: configuration.idempotentRegistrations,
                webPushKeys: node.delivery.routing.webPushKeys,
                isWebPushChanging: { [cluster = node.cluster] in cluster.isDisputed("--web-push") },
                isWebPushUnknown: { [cluster = node.cluster] in cluster.isUnknownElsewhere("--web-push") }, clients: clients,
                serves: { [routing = node.delivery.routing] in routing.endpoint(for: $0, apnTopic: $1) != nil })
            let requestRules = RequestRules(maximumAge: configuration.requestAgeLimit, server: mark)
            return ServedIdentity(
                mark: mark,
                decoder: StatusDecoder(
                    identity: key, registrations: rules, requests: requestRules, versions: versions, limits: limits,
                    isStored: { [topics] in topics.contains(TopicTag(of: StatusTopics.query($0))) }),
                registration: RegistrationHandler(
                    rules: rules, registrations: registrations, limits: limits, drain: node.drain, asked: asked),
                request: RequestHandler(rules: requestRules, registrations: registrations, limits: limits, isShared: node.cluster.isShared),
                queries: QueryRules(server: key.publicKey), replies: StatusReplies(identity: key))
        }
        receiver = node.receiver(
            StatusHandler(
                node: node, topics: topics, topicKeys: topicKeys, precomputation: precomputation, servers: servers, versions: versions,
                registrations: registrations, asked: asked, limits: limits))
    }

    func run() async {
        async let marks: Void = storeAskedMarks()
        async let identities: Void = storeIdentities()
        async let standings: Void = restoreStandings()
        await precomputation?.run()
        _ = await (marks, identities, standings)
    }

    /// Stores the marks of registrations that queries were about, the last ones when it is cancelled. A crash loses those of the last seconds: the
    /// next query makes them again.
    private func storeAskedMarks() async {
        while (try? await Task.sleep(for: Self.askedInterval)) != nil { await storeAsked() }
        await storeAsked()
    }

    private func storeAsked() async {
        let rows = asked.all
        for chunk in rows.chunks(of: Self.askedChunk).map(Array.init) {
            do throws(StoreError) {
                try await node.store.commit(.change(chunk.map(Registrations.asked)))
                asked.remove(chunk)
            } catch {
                return node.errors.log("failed to mark registrations as asked for", reason: error.message)
            }
        }
    }

    private func restoreStandings() async {
        guard !limits.limiter.isUnlimited else { return }
        let source = StatusDeliverySource(node.store.sealer)
        await node.restoreStandings(of: source) { row, token in
            guard let owner = try? source.owner(of: row), let registrant = KeyHash(bytes: owner.keyHash) else { return }
            limits.accepted(limits.standings.hasher.payer(.deviceToken, token.bytes), of: registrant, at: node.now())
        }
    }

    // MARK: Maintenance

    func prune(_ retention: Retention) async {
        do throws(StoreError) {
            try await node.store.prune(
                AnswerStorage.rows, before: retention.cutoff, at: retention.now, keeping: retention.rowLimit, since: retention.fresh)
            try await node.store.commitInChunks { Registrations.unfounded.forget(at: retention.now, limit: $0) }
            if Task.isCancelled { return }
            let kept = limits.limiter.limits.registrationCount ?? Self.neverAskedLimit
            let excess = try await node.store.fetch(Registrations.neverAskedTombstoneCount()) - kept
            try await node.store.commitInChunks(atMost: excess) { Registrations.forgetNeverAsked(limit: $0) }
        } catch {
            node.logger.error("failed to prune old answers", metadata: ["reason": "\(error.message)"])
        }
    }

    func recount() async {
        if limits.limiter.countsRegistrations, let count = try? await node.store.fetch(Registrations.countedRegistrations()) {
            limits.limiter.counted(registrations: count)
        }
        limits.endMinute(of: node)
        for clients in clients { clients.endMinute(at: node.now()) }
        if topics.isGrown { try? await loadTopics() }
    }

    var findings: [Finding] {
        let exhausted = limits.exhaustedFinding("a new device displaces one that no one has asked for")
        return [exhausted, webPushFinding, unservedFinding].compactMap(\.self)
    }

    /// Removes registrations that were not renewed, as if the client had unregistered, so that old messages don't restore them.
    func expire(at now: Timestamp) async {
        guard let lifetime = configuration.registrationLifetime else { return }
        await node.expire(
            notRenewedFor: lifetime, at: now, Registrations.registrations(unchangedSince:), "failed to expire registrations",
            by: { Registrations.expire($0, unchangedSince: $1, at: now) },
            expired: { topicKeys.forget(QueryTopics(of: $0.keyHash)) })
    }

    func reload() async throws(StoreError) {
        try await loadTopics()
        topicKeys.forgetAll()
    }

    private func loadTopics() async throws(StoreError) {
        try await node.store.onReader { [topics] store throws(StoreError) in try topics.load(from: store) }
    }

    func registeredElsewhere(_ name: [UInt8]) {
        guard let registrant = KeyHash(bytes: name) else { return }
        let queryTopics = QueryTopics(of: registrant)
        topicKeys.forget(queryTopics)
        topics.insert(queryTopics)
    }

    // MARK: Figures

    var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] {
        [
            (.work, receiver.load.depth, receiver.load.limit),
            (.topicKeys, receiver.waitingForKeys.depth, receiver.waitingForKeys.limit),
            (.topicKeysAhead, precomputation?.count ?? 0, precomputation?.limit),
        ]
    }

    func updateGauges(_ counters: Counters) async {
        let registry = counters.registry
        registry.set(.topics, to: Double(topics.otherCount))
        let figures = await figures.value()
        registry.set(figures?.devices, of: .status)
        for (label, (_, count)) in zip(IdentityLabel.allCases, await identityCounts().prefix(identities.count)) {
            registry.set(.identityRegistrations, label, to: count.map(Double.init))
        }
        if node.delivery.routing.postsWebPush { registry.set(figures.map(webPushKeyUse), of: .status) }
    }

    func countDevices() async { await figures.readAhead() }

    private var unservedFinding: Finding? {
        figures.latest.flatMap { NodeChecks.unserved("Status", $0.devices.registered, serves: node.delivery.routing.serves) }
    }

    func registrations() async -> DeviceFigures? {
        await figures.value()?.devices
    }

    /// Records the identities if there are several, and logs those that are not given any more. Retried every second: the marks of registrations do
    /// not tell their identities without the record.
    private func storeIdentities() async {
        guard identities.count > 1 || !marks.known.isEmpty else { return }
        while true {
            do throws(StoreError) {
                try await node.store.commit(StoreIdentities.add(identities, by: node.store.sealer))
                break
            } catch {
                node.errors.log("failed to record the identities", reason: error.message)
                guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
            }
        }
        let counts = await identityCounts()
        for (identity, count) in counts where count ?? 0 > 0 && !identities.contains(identity) {
            node.logger.warning(
                "registrations of an identity that is not served",
                metadata: ["key": "\(identity.hex)", "registrations": .stringConvertible(count ?? 0)])
        }
    }

    /// Numbers of registrations by identity, served ones first; empty with only one identity.
    private func identityCounts() async -> [(identity: PublicKey, count: Int?)] {
        let all = identities + marks.known.filter { !identities.contains($0) }
        guard all.count > 1 else { return [] }
        let figures = await figures.value()
        let marked = figures?.byServer.values.reduce(0, +) ?? 0
        return all.map { identity in
            let count = figures.map { figures in
                marks.mark(of: identity).map { figures.byServer[$0] ?? 0 } ?? figures.devices.total - marked
            }
            return (identity, count)
        }
    }

    func facts() async -> [ProtocolFact] {
        let counts = await identityCounts().map { identity, count in
            ProtocolFact(
                "identity \(identity.hex.prefix(12))…",
                (count.map { "\($0) registrations" } ?? "not known") + (identities.contains(identity) ? "" : ", not served"))
        }
        let use = node.delivery.routing.postsWebPush ? await figures.value().map(webPushKeyUse) : nil
        return [ProtocolFact("query topics", "\(topics.otherCount)")] + counts + (use.map { [$0.fact] } ?? [])
    }

    /// Which VAPID keys the subscriptions name.
    private var webPushFinding: Finding? {
        guard node.delivery.routing.postsWebPush, let figures = figures.latest else { return nil }
        return webPushKeyUse(figures).finding("Status")
    }

    private func webPushKeyUse(_ figures: RegistrationFigures) -> WebPushKeyUse {
        WebPushKeyUse(
            total: figures.devices.registered[.webPush] ?? 0, counts: figures.devices.webPushKeys, keys: node.delivery.routing.webPushKeys)
    }
}
