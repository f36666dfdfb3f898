import Synchronization

extension SubscriptionMonitor {
    package typealias Figures = MonitorStateMachine.Figures

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

    /// See ``MonitorStateMachine/Figures/connectionLimit``.
    func connectionLimit(for servers: Int) -> Int? {
        let limit = configuration.connections.maximumConnections
        return servers > limit ? limit : nil
    }
}
