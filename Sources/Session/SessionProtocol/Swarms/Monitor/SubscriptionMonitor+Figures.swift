import Synchronization

extension SubscriptionMonitor {
    package typealias Figures = SwarmMonitor.Figures

    /// The current figures; during a large change, those before it.
    package var figures: Figures {
        let current = state.withLockIfAvailable { state in
            var figures = state.monitor.figures
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
