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

/// The running version 0.1 protocol: see ``StatusPushV01``.
struct V01Service: RateLimitedService {

    let node: NodeServices
    private let configuration: StatusPushV01.Configuration
    private let topic: ContentTopic
    let limits: V01Limits
    let receiver: any WakuReceiver
    private let figures: ThrottledReading<RecordFigures>

    /// - Throws: `StoreError`
    init(_ identity: PrivateKey, configuration: StatusPushV01.Configuration, limits: V01Limits, node: NodeServices) throws {
        self.node = node
        self.configuration = configuration
        self.limits = limits
        topic = ContentTopic(TopicTag(of: V01.serverTopic(identity.publicKey)))
        let store = node.store
        limits.attach(to: node)
        // Creates the series, so that results that did not occur are shown as 0.
        for label in AcknowledgementLabel.allCases { node.counters.increment(.acknowledgements, label, by: 0) }
        if limits.limiter.countsRegistrations { limits.limiter.counted(registrations: try store.read(Records.deviceCount())) }
        figures = ThrottledReading { try await store.fetch(Records.figures()) }

        let records = Records(store.sealer, errors: node.errors)
        let ages = RequestRules(maximumAge: configuration.requestAgeLimit)
        let keys = [identity] + configuration.otherIdentities
        let marks = ServerMarks(known: try store.read(StoreIdentities.all()), identity: identity.publicKey)
        var owners: [TopicTag: [Int]] = [:]
        for (index, key) in keys.enumerated() { owners[TopicTag(of: V01.serverTopic(key.publicKey)), default: []].append(index) }
        let servers = keys.map { key in
            let mark = marks.mark(of: key.publicKey)
            let rules = V01.RegisterRules(server: key.publicKey, mark: mark) { [routing = node.delivery.routing] platform in
                routing.endpoint(for: platform, apnTopic: configuration.apnsTopic) != nil
            }
            return V01ServedIdentity(
                mark: mark, decoder: V01Decoder(identity: key, server: mark, rules: rules, ages: ages, limits: limits),
                register: V01RegisterHandler(rules: rules, records: records, limits: limits, drain: node.drain),
                request: V01RequestHandler(
                    records: records, server: mark, limits: limits, apnsTopic: configuration.apnsTopic, isShared: node.cluster.isShared),
                replies: V01Replies(identity: key))
        }
        receiver = node.receiver(
            V01Handler(node: node, servers: servers, owners: owners, records: records, limits: limits))
    }

    func run() async {
        guard !limits.limiter.isUnlimited else { return }
        let source = V01DeliverySource(node.store.sealer, apnsTopic: configuration.apnsTopic)
        await node.restoreStandings(of: source) { row, token in
            guard let registrant = try? V01DeliverySource.identity(of: row).keyHash else { return }
            limits.accepted(limits.standings.hasher.payer(.deviceToken, token.bytes), of: registrant, at: node.now())
        }
    }

    // MARK: Maintenance

    func prune(_ retention: Retention) async {
        do throws(StoreError) {
            try await node.store.prune(
                V01Answers.rows, before: retention.cutoff, at: retention.now, keeping: retention.rowLimit, since: retention.fresh)
            try await node.store.commitInChunks { Records.unfounded.forget(at: retention.now, limit: $0) }
            try await node.store.commitInChunks { Records.retiredTokens.remove(before: retention.now.rawValue, limit: $0) }
        } catch {
            node.logger.error("failed to prune old acknowledgements", metadata: ["reason": "\(error.message)"])
        }
    }

    func recount() async {
        if limits.limiter.countsRegistrations, let count = try? await node.store.fetch(Records.deviceCount()) {
            limits.limiter.counted(registrations: count)
        }
        limits.endMinute(of: node)
    }

    /// Removes records that were not renewed, as if the client had unregistered, so that old messages don't restore them.
    func expire(at now: Timestamp) async {
        guard let lifetime = configuration.registrationLifetime else { return }
        await node.expire(
            notRenewedFor: lifetime, at: now, Records.records(unchangedSince:), "failed to expire v0.1 records",
            by: { Records.expire($0, unchangedSince: $1, at: now) })
    }

    // MARK: Figures

    var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] { [(.work, receiver.load.depth, receiver.load.limit)] }

    func updateGauges(_ counters: Counters) async {
        let registry = counters.registry
        let figures = await figures.value()
        registry.set(figures?.devices, of: .statusV01)
    }

    func countDevices() async { await figures.readAhead() }

    var findings: [Finding] {
        let unserved = figures.latest.flatMap {
            V01Checks.unserved($0.devices, routing: node.delivery.routing, apnsTopic: configuration.apnsTopic)
        }
        return [limits.exhaustedFinding(), unserved].compactMap(\.self)
    }

    func registrations() async -> DeviceFigures? {
        await figures.value()?.devices
    }

    func facts() async -> [ProtocolFact] {
        let records = await figures.value().map { String($0.records) }
        return [ProtocolFact("topic", topic.rawValue), ProtocolFact("records", records ?? "not known")]
            + (configuration.apnsTopic.isEmpty ? [] : [ProtocolFact("APNs topic", configuration.apnsTopic)])
    }
}
