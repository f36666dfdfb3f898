package import Core

extension MonitorStateMachine {
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

    /// Whether any server is connected.
    package var isConnected: Bool {
        servers.contains { server in
            if case .connected = server.state { return true }
            return false
        }
    }

    /// The server of a current connection or connection attempt.
    package func server(of connection: ConnectionNumber) -> StorageServer? {
        connections[connection].map { servers[$0].description }
    }

    package var figures: Figures {
        var figures = Figures()
        figures.subscriptions = subscriptions.count
        figures.accounts = subscriptions.accountCount
        figures.connectingServers = connectingCount
        figures.knownSwarms = ring.ids.count
        var reachable: Set<Int> = []
        for server in servers where server.isOfMap {
            figures.knownServers += 1
            guard case .connected = server.state else { continue }
            figures.connectedServers += 1
            figures.refusals += server.refused.count
            reachable.insert(server.swarm)
        }
        figures.reachableSwarms = reachable.count
        let further = subscriptions.furtherCounts
        figures.monitoredSubscriptions = reachable.reduce(0) { $0 + swarms[$1].liveCount - further[$1, default: 0] }
        return figures
    }
}
