import Core

extension MonitorStateMachine {
    /// Whether any server is connected.
    var isConnected: Bool {
        servers.contains { server in
            if case .connected = server.state { return true }
            return false
        }
    }

    /// The server of a current connection or connection attempt.
    func server(of connection: ConnectionNumber) -> StorageServer? {
        connections[connection].map { servers[$0].description }
    }

    var figures: SubscriptionMonitor.Figures {
        var figures = SubscriptionMonitor.Figures()
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
