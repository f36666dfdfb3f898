import NodeAPI
import SessionProtocol
import Synchronization

/// The monitor of one of several nodes. Each node monitors its share of the accounts.
///
/// All nodes learn of new subscriptions from the database, including those that they stored themselves.
final class SharedMonitoring: SubscriptionMonitoring {
    private let monitor: any SubscriptionMonitoring
    /// nil until the nodes are known; until then no account is monitored.
    private let current = Mutex<KeyShare?>(nil)

    init(_ monitor: any SubscriptionMonitoring) {
        self.monitor = monitor
    }

    var share: KeyShare? {
        get { current.withLock(\.self) }
        set { current.withLock { $0 = newValue } }
    }

    /// Monitors the stored subscriptions of this node's share. Does not remove others: see ``releaseAccounts()``.
    func load(_ all: [MonitoredSubscription]) {
        guard let share else { return }
        monitor.load(all.filter { share.contains($0.account) })
    }

    /// Monitors the stored subscriptions of accounts that have moved to this node.
    func take(_ all: [MonitoredSubscription], from former: KeyShare?, to share: KeyShare) {
        monitor.load(all.filter { share.contains($0.account) && former?.contains($0.account) != true })
    }

    /// Stops monitoring accounts of other nodes. Called after these have had time to connect to storage servers.
    func releaseAccounts() {
        // Within the lock, so that accounts that move to this node are loaded afterwards.
        current.withLock { current in
            guard let share = current else { return }
            monitor.removeAccounts { !share.contains($0) }
        }
    }

    /// Monitors subscriptions stored or changed by any node, if they belong to this node's share.
    func changed(_ subscriptions: [MonitoredSubscription]) {
        guard let share else { return }
        for subscription in subscriptions where share.contains(subscription.account) { monitor.apply(.set(subscription)) }
    }

    /// Subscriptions that this node stored come by ``changed(_:)``, too.
    func apply(_ change: MonitoringChange) { if case .remove = change { monitor.apply(change) } }
    func removeAccounts(where isAssignedElsewhere: @escaping @Sendable (AccountID) -> Bool) {
        monitor.removeAccounts(where: isAssignedElsewhere)
    }
    func run() async throws { try await monitor.run() }
    func reloadServers() { monitor.reloadServers() }
    var figures: SubscriptionMonitor.Figures { monitor.figures }
}

extension KeyShare {
    fileprivate func contains(_ account: AccountID) -> Bool { contains(account.leadingBits) }
}
