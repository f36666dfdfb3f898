import NodeAPI
import SessionSwarms
import SessionProtocol
import Synchronization

/// The monitor of one of several nodes: each has storage servers report the messages of its share of the accounts.
///
/// Which subscriptions there are, all nodes learn from the database: also of those that were stored here.
final class SharedMonitoring: SubscriptionMonitoring {
    private let monitor: any SubscriptionMonitoring
    /// nil until the nodes are known: then there are none to monitor.
    private let current = Mutex<KeyShare?>(nil)

    init(_ monitor: any SubscriptionMonitoring) {
        self.monitor = monitor
    }

    var share: KeyShare? {
        get { current.withLock(\.self) }
        set { current.withLock { $0 = newValue } }
    }

    /// What is stored. What is another's is let go only when the nodes change: see ``letGo()``.
    func load(_ all: [MonitoredSubscription]) {
        guard let share else { return }
        monitor.load(all.filter { share.contains($0.account) })
    }

    /// Of what is stored, what has become this node's.
    func take(_ all: [MonitoredSubscription], from former: KeyShare?, to share: KeyShare) {
        monitor.load(all.filter { share.contains($0.account) && former?.contains($0.account) != true })
    }

    /// What is another's by now, which had time to ask storage servers.
    func letGo() {
        // Within the lock: what becomes this node's is loaded after that.
        current.withLock { current in
            guard let share = current else { return }
            monitor.unload { !share.contains($0) }
        }
    }

    /// Subscriptions that were stored or changed, by any node.
    func changed(_ subscriptions: [MonitoredSubscription]) {
        guard let share else { return }
        for subscription in subscriptions where share.contains(subscription.account) { monitor.set(subscription) }
    }

    func set(_ subscription: MonitoredSubscription) {}
    func remove(_ id: SubscriptionID) { monitor.remove(id) }
    func unload(where isOthers: @escaping @Sendable (AccountID) -> Bool) { monitor.unload(where: isOthers) }
    func run() async throws { try await monitor.run() }
    func reloadServers() { monitor.reloadServers() }
    var figures: SubscriptionMonitor.Figures { monitor.figures }
}

extension KeyShare {
    fileprivate func contains(_ account: AccountID) -> Bool { contains(account.leadingBits) }
}
