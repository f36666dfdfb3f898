package import Core
import Synchronization

extension SubscriptionMonitor {
    /// Figures for gauges, the status page and readiness.
    package struct Figures: Hashable, Sendable {
        package var subscriptions = 0
        package var accounts = 0
        package var knownServers = 0
        package var connectedServers = 0
        package var connectingServers = 0
        package var knownSwarms = 0
        /// Number of swarms with a connected server.
        package var reachableSwarms = 0
        /// Number of subscriptions with a reachable swarm.
        package var monitoredSubscriptions = 0
        /// Number of refused pairs of subscription and server.
        package var refusals = 0
        /// When the current map of servers was received; nil if there is none yet.
        package var mapReceivedAt: Instant?
        /// How many connections the limit of open files allows; nil if that is enough for all servers.
        package var connectionLimit: Int?
        /// nil if the map comes from a file.
        package var isOxendConnected: Bool?

        package init() {}
    }

    /// The current figures; during a large change, those before it.
    package var figures: Figures {
        let current = state.withLockIfAvailable { state in
            var figures = state.monitor.figures
            figures.mapReceivedAt = state.mapReceivedAt
            figures.connectionLimit = connectionLimit(for: figures.knownServers)
            return figures
        }
        return lastFigures.withLock { last in
            if let current { last = current }
            last.isOxendConnected = oxend?.isConnected
            return last
        }
    }

    /// See ``Figures/connectionLimit``.
    func connectionLimit(for servers: Int) -> Int? {
        let limit = configuration.connections.maximumConnections
        return servers > limit ? limit : nil
    }
}
