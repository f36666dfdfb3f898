import Foundation
import Logging
import Core
import SessionProtocol
import SessionStandIns
import Synchronization
import WakuCrypto

/// The monitor alone: renewals on connections to many storage servers.
struct SessionMonitorBench: Sendable {
    private static let swarmCount = 286
    private static let renewalRate = 3500.0

    let settings: BenchSettings
    let serverCount: Int
    let sodium: Sodium
    let library: ZeroMQLibrary

    private static func swarms(_ serverCount: Int) -> [UInt64] {
        (0..<serverCount).map { UInt64($0 % swarmCount) * (UInt64.max / UInt64(swarmCount)) }
    }

    /// Storage servers are in this process too: the CPU time includes theirs.
    func measureRenewals() async throws -> BenchResult {
        // Descriptors for both ends of a connection, and for each end's further needs.
        let serverCount = min(serverCount, max((DescriptorLimit.raise() - 500) / 8, 1))
        settings.progress("session renewals: \(serverCount) connections", 0)
        return try await StorageServerStandIn.running(library: library, sodium: nil, swarms: Self.swarms(serverCount)) { servers in
            try await measureRenewals(on: servers, serverCount)
        }
    }

    private func measureRenewals(on servers: StorageServerStandIn, _ serverCount: Int) async throws -> BenchResult {
        let renewal = Duration.seconds(min(max(settings.seconds * 4, 2), 30))
        let entries = try await entries(count: subscriptionCount(serverCount, renewal))
        let nodes = FileManager.default.temporaryDirectory.appendingPathComponent("waku-push-nodes-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: nodes) }
        guard FileManager.default.createFile(atPath: nodes, contents: Data(StorageServerStandIn.nodesFile(servers.descriptions).utf8))
        else {
            throw BenchError.disk
        }
        let asked = AskedCount()
        let monitor = SubscriptionMonitor(
            .init(source: .file(nodes), renewal: renewal), library: library, entries: entries, receiver: NobodysMessages(),
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
        ) { event in
            if case .asked(let count) = event { asked.add(count) }
        }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await monitor.run() }
            defer { group.cancelAll() }
            return try await measure(monitor, entries, asked, serverCount, renewal)
        }
    }

    private func measure(
        _ monitor: SubscriptionMonitor, _ entries: HeldEntries, _ asked: AskedCount, _ serverCount: Int, _ renewal: Duration
    ) async throws -> BenchResult {
        let connecting = Clock.uptime()
        monitor.load(entries.all)
        try await SessionBench.wait("storage servers connected") { monitor.figures.connectedServers == serverCount }
        let connected = Clock.uptime()
        // The first renewals are as close together as the first requests were.
        try await Task.sleep(for: renewal * 1.5)
        settings.progress("session renewals: \(serverCount) connections", 0.5)
        let (cpu, start, before) = (Clock.process(), Clock.uptime(), asked.value)
        // Each subscription is renewed once within 1.22 times the interval, and twice within 2.44 times.
        try await Task.sleep(for: renewal * 2.22)
        let seconds = Double(Clock.uptime() - start) / 1e9
        let count = asked.value - before
        let cores = Double(Clock.process() - cpu) / 1e9 / seconds
        let lost = serverCount - monitor.figures.connectedServers
        var result = BenchResult(name: "session renewals")
        result.rate = Double(count) / seconds
        result.cpuMicroseconds = count > 0 ? cores * seconds * 1e6 / Double(count) : nil
        result.residentBytes = ProcessMemory.residentBytes()
        result.messages = count
        result.unanswered = lost
        result.details = [
            "connections": Double(serverCount), "connectMilliseconds": Double(connected - connecting) / 1e6, "coresBusy": cores,
        ]
        let busy = (cores * 100).rounded() / 100
        result.note =
            "\(serverCount) connections made in \((connected - connecting) / 1_000_000) ms; renewals and storage servers use \(busy) cores"
        return result
    }

    /// The number of subscriptions that gives the intended renewals per second.
    private func subscriptionCount(_ serverCount: Int, _ renewal: Duration) -> Int {
        let perSubscription = Double(serverCount) / Double(min(serverCount, Self.swarmCount))
        return max(Int(Self.renewalRate * (renewal * 1.11 / .seconds(1)) / perSubscription), 1)
    }

    private func entries(count: Int) async throws -> HeldEntries {
        let made = await makeInParallel(count, cores: settings.cores) { [sodium] number -> HeldEntries.Entry? in
            SessionClient(sodium: sodium, kind: .group).map { client in
                let entry = client.monitorEntry(of: SessionClient.Device(token: "bench"), at: 1_700_000_000)
                return (
                    entry,
                    MonitoredSubscription(
                        id: SubscriptionID(rawValue: Int64(number)), account: client.account, entryByteCount: entry.bytes.count)
                )
            }
        }
        return HeldEntries(made.compactMap(\.self))
    }
}

/// Entries in memory instead of in the store.
private struct HeldEntries: MonitorEntrySource {
    typealias Entry = (entry: MonitorEntry, subscription: MonitoredSubscription)

    private let made: [Entry]

    init(_ made: [Entry]) {
        self.made = made
    }

    var all: [MonitoredSubscription] { made.map(\.subscription) }

    func entries(of ids: [SubscriptionID]) async throws -> [SubscriptionID: MonitorEntry] {
        Dictionary(uniqueKeysWithValues: ids.map { ($0, made[Int($0.rawValue)].entry) })
    }
}

/// Subscriptions that storage servers were asked to monitor.
private final class AskedCount: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }
    func add(_ number: Int) { count.add(number, ordering: .relaxed) }
}

private struct NobodysMessages: SessionMessageReceiver {
    func take(_ messages: [ReportedMessage]) async {}
    func settle() async {}
}
