package import Core
import Synchronization

extension SubscriptionMonitor {
    /// Figures for the status page, metrics and readiness.
    package struct Figures: Hashable, Sendable {
        package var subscriptions = 0
        package var accounts = 0
        /// Number of subscriptions whose swarm has a connected server.
        package var monitoredSubscriptions = 0
        package var knownServers = 0
        package var connectedServers = 0
        package var knownSwarms = 0
        /// Number of swarms with a connected server.
        package var reachableSwarms = 0
        /// Number of pairs of subscription and server that the server has refused.
        package var refusals = 0
        /// When the current map of servers was received; nil if there is none yet.
        package var mapReceivedAt: Instant?
        /// nil if the map comes from a file.
        package var isOxendConnected: Bool?

        package init() {}

        /// Share of reachable swarms, from 0 to 1; 0 without a map.
        package var reachableShare: Double { knownSwarms == 0 ? 0 : Double(reachableSwarms) / Double(knownSwarms) }
    }

    /// The current figures; during a large change, those before it.
    package var figures: Figures {
        let current = state.withLockIfAvailable { state in
            let counted = state.monitor.figures
            var figures = Figures()
            figures.subscriptions = counted.subscriptions
            figures.accounts = counted.accounts
            figures.monitoredSubscriptions = counted.monitoredSubscriptions
            figures.knownServers = counted.knownServers
            figures.connectedServers = counted.connectedServers
            figures.knownSwarms = counted.knownSwarms
            figures.reachableSwarms = counted.reachableSwarms
            figures.refusals = counted.refusals
            figures.mapReceivedAt = state.mapReceivedAt
            return figures
        }
        return lastFigures.withLock { last in
            if let current { last = current }
            last.isOxendConnected = oxend?.isConnected
            return last
        }
    }
}
