import Foundation
import Core
import SessionProtocol
import SessionStandIns
import Synchronization
import WakuCrypto

extension SessionBench {
    /// The monitor alone: renewals on connections to `serverCount` storage servers. These are in this process too: the CPU time includes theirs.
    func measureRenewals() async throws -> BenchResult {
        // Descriptors for both ends of a connection, and the listener.
        let serverCount = min(serverCount, max((DescriptorLimit.raise() - 500) / 4, 1))
        settings.progress("session renewals: \(serverCount) connections", 0)
        return try await StorageServerStandIn.running(sodium: sodium, swarms: (0..<serverCount).map(Self.swarm)) { servers in
            try await settings.withFolder { try await measureRenewals(on: servers, serverCount, in: $0) }
        }
    }

    private func measureRenewals(on servers: StorageServerStandIn, _ serverCount: Int, in folder: String) async throws -> BenchResult {
        let renewal = Duration.seconds(min(max(settings.seconds * 4, 2), 30))
        let entries = try await entries(count: renewedCount(serverCount, renewal))
        let nodes = try Self.writeNodes(servers.descriptions, in: folder)
        let asked = Atomic(0)
        let monitor = SubscriptionMonitor(
            .init(source: .file(nodes), renewal: renewal), sodium: sodium, entries: entries, receiver: NobodysMessages(),
            logger: .quiet
        ) { event in
            if case .asked(let count) = event { asked.add(count, ordering: .relaxed) }
        }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await monitor.run() }
            defer { group.cancelAll() }
            return try await measure(monitor, entries, asked, serverCount, renewal)
        }
    }

    private func measure(
        _ monitor: SubscriptionMonitor, _ entries: HeldEntries, _ asked: borrowing Atomic<Int>, _ serverCount: Int, _ renewal: Duration
    ) async throws -> BenchResult {
        let connecting = Clock.uptime()
        monitor.load(entries.made.map(\.subscription))
        try await Self.wait("storage servers connected") { monitor.figures.connectedServers == serverCount }
        let connected = Clock.uptime()
        // The first renewals are as close together as the first requests were.
        try await Task.sleep(for: renewal * 1.5)
        settings.progress("session renewals: \(serverCount) connections", 0.5)
        let (cpu, start, before) = (Clock.process(), Clock.uptime(), asked.load(ordering: .relaxed))
        // Each subscription is renewed once within 1.22 times the interval, and twice within 2.44 times.
        try await Task.sleep(for: renewal * 2.22)
        let seconds = Double(Clock.uptime() - start) / 1e9
        let count = asked.load(ordering: .relaxed) - before
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
    private func renewedCount(_ serverCount: Int, _ renewal: Duration) -> Int {
        let perSubscription = Double(serverCount) / Double(min(serverCount, Self.swarmCount))
        return max(Int(renewalRate * (renewal * 1.11 / .seconds(1)) / perSubscription), 1)
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
        return HeldEntries(made: made.compactMap(\.self))
    }
}

/// Entries in memory instead of in the store.
private struct HeldEntries: MonitorEntrySource {
    typealias Entry = (entry: MonitorEntry, subscription: MonitoredSubscription)

    let made: [Entry]

    func entries(of ids: [SubscriptionID]) async throws -> (found: [SubscriptionID: MonitorEntry], ended: [SubscriptionID]) {
        (Dictionary(uniqueKeysWithValues: ids.map { ($0, made[Int($0.rawValue)].entry) }), [])
    }
}

private struct NobodysMessages: SessionMessageReceiver {
    func take(_ messages: [ReportedMessage]) async {}
    func settle() async {}
}
