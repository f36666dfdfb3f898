package import Logging
package import SessionSwarms
package import SessionProtocol

/// Has storage servers report the messages of subscriptions: `SubscriptionMonitor`, or a test's own.
package protocol SubscriptionMonitoring: Sendable {
    /// All subscriptions, in one or several calls.
    func load(_ all: [MonitoredSubscription])
    /// A subscription was stored.
    func set(_ subscription: MonitoredSubscription)
    /// A subscription is gone.
    func remove(_ id: SubscriptionID)
    /// The subscriptions of these accounts are monitored no more, in the order of all calls of ``load(_:)`` and this.
    func unload(where isOthers: @escaping @Sendable (AccountID) -> Bool)
    /// Runs until cancelled.
    func run() async throws
    /// Reads the list of storage servers again.
    func reloadServers()
    var figures: SubscriptionMonitor.Figures { get }
}

extension SubscriptionMonitor: SubscriptionMonitoring {}

extension SubscriptionMonitoring {
    func apply(_ change: MonitoringChange) {
        switch change {
        case .set(let id, let account, let entryByteCount):
            set(MonitoredSubscription(id: id, account: account, entryByteCount: entryByteCount))
        case .remove(let id): remove(id)
        }
    }
}

/// Makes the monitor of a node from what it asks and tells.
package typealias MakeSubscriptionMonitor =
    @Sendable (
        _ entries: any MonitorEntrySource, _ receiver: any SessionMessageReceiver, _ logger: Logger,
        _ count: @escaping @Sendable (MonitorEvent) -> Void
    ) -> any SubscriptionMonitoring
