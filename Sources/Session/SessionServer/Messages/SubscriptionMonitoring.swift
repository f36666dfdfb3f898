package import Logging
package import SessionProtocol

/// Monitors the messages of subscriptions at storage servers: `SubscriptionMonitor`, or a fake in tests.
package protocol SubscriptionMonitoring: AnyObject, Sendable {
    /// Adds subscriptions, in one or several calls.
    func load(_ all: [MonitoredSubscription])
    func apply(_ change: MonitoringChange)
    /// Stops monitoring the accounts that meet a condition. Takes effect in order with calls of ``load(_:)``.
    func removeAccounts(where isAssignedElsewhere: @escaping @Sendable (AccountID) -> Bool)
    /// Runs until cancelled.
    func run() async throws
    /// Reads the list of storage servers again.
    func reloadServers()
    var figures: SubscriptionMonitor.Figures { get }
}

extension SubscriptionMonitor: SubscriptionMonitoring {}

/// Creates the monitor of a node from its source of entries and its receiver of messages.
package typealias MakeSubscriptionMonitor =
    @Sendable (
        _ entries: any MonitorEntrySource, _ receiver: any SessionMessageReceiver, _ logger: Logger,
        _ count: @escaping @Sendable (MonitorEvent) -> Void
    ) -> any SubscriptionMonitoring
