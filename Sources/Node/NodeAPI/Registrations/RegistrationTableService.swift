package import Core
import Delivery
package import NodeMetrics
import RateLimits
package import Storage

/// The service of a protocol whose devices are in a ``RegistrationTable``. Adds the work that is the same for all such protocols: counting and limiting
/// devices, and showing them to operators.
package struct RegistrationTableService: ProtocolService {
    private let service: any ProtocolService
    private let registrations: any OperatedRegistrations
    private let limits: RegistrationLimits
    private let label: ProtocolLabel
    private let node: NodeServices
    private let figures: ThrottledReading<DeviceFigures>

    /// - Throws: errors of the protocol, and `StoreError`.
    package init(
        _ spoken: any NodeProtocol, _ registrations: any OperatedRegistrations, limits: RegistrationLimits, node: NodeServices
    ) throws {
        var node = node
        node.limits = limits
        self.node = node
        self.registrations = registrations
        self.limits = limits
        label = spoken.label
        limits.attach(to: node)
        if limits.limiter.countsRegistrations { limits.limiter.counted(registrations: try node.store.read(registrations.rowCount())) }
        figures = ThrottledReading { [store = node.store] in try await store.fetch(registrations.figures()) }
        service = try spoken.makeService(node)
    }

    // MARK: Added

    package func recount() async {
        await service.recount()
        await countRows()
        limits.endMinute(of: node)
    }

    private func countRows() async {
        if limits.limiter.countsRegistrations, let count = try? await node.store.fetch(registrations.rowCount()) {
            limits.limiter.counted(registrations: count)
        }
    }

    package func nodeCountChanged(_ nodeCount: Int) {
        service.nodeCountChanged(nodeCount)
        limits.limiter.share(among: nodeCount)
    }

    package func updateGauges(_ counters: Counters) async {
        await service.updateGauges(counters)
        counters.registry.set(await figures.value(), of: label)
    }

    package func registrations() async -> DeviceFigures? { await figures.value() }

    package func countDevices() async {
        await service.countDevices()
        await figures.readAhead()
    }

    package var findings: [Finding] {
        let unserved = figures.latest.flatMap {
            NodeChecks.unserved(label.rawValue, $0.registered, serves: node.delivery.routing.serves)
        }
        let exhausted = limits.exhaustedFinding("a new device displaces one that was never notified")
        return service.findings + [exhausted, unserved].compactMap(\.self)
    }

    package var limitReport: LimitReport? { LimitReport(limits.limiter, hasher: limits.hasher, at: node.now()) }

    package func facts() async -> [ProtocolFact] {
        let figures = await figures.value()
        let devices = figures.map { String($0.total) } ?? "not known"
        let limit = limits.limiter.limits.registrationCount.map { " of at most \($0)" } ?? ""
        return [ProtocolFact("devices", devices + limit)] + (await service.facts())
    }

    /// An import changes the number of devices.
    package func reload() async throws(StoreError) {
        try await service.reload()
        await countRows()
    }

    // MARK: Unchanged

    package var receiver: any WakuReceiver { service.receiver }
    package func run() async throws { try await service.run() }
    package var deliveryMemory: DeliveryMemory? { service.deliveryMemory }
    package func prune(_ retention: Retention) async { await service.prune(retention) }
    package func expire(at now: Timestamp) async { await service.expire(at: now) }
    package func reloadFiles() { service.reloadFiles() }
    package var httpPort: Int? { service.httpPort }
    package var isListening: Bool { service.isListening }
    package var hasPort: Bool { service.hasPort }
    package func registeredElsewhere(_ name: [UInt8]) { service.registeredElsewhere(name) }
    package func keyShareChanged(_ share: KeyShare) { service.keyShareChanged(share) }

    package var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] {
        let queues = service.queues
        return queues.isEmpty ? [(.work, receiver.load.depth, receiver.load.limit)] : queues
    }
}
