package import NIOCore

/// How long a client of an HTTP listener may take for each step, and how many may be connected.
package struct HTTPLimits: Hashable, Sendable {
    /// From the connection to the end of its first request's head.
    package var headerTimeout = TimeAmount.seconds(10)
    /// From the end of a request's head to the end of its body.
    package var bodyTimeout = TimeAmount.seconds(30)
    /// From a response to the end of the next request's head.
    package var idleTimeout = TimeAmount.seconds(60)
    /// From the beginning of a response to when the client has taken it.
    package var responseTimeout = TimeAmount.seconds(60)
    /// Connections beyond it take the place of those that nothing happened on for longest.
    package var connections: Int
    /// Beyond ``connections``, while the connections in excess are closed or all are busy; then nothing is accepted until one ends.
    package var reserve: Int { max(connections / 8, 4) }

    package init(connections: Int) {
        self.connections = connections
    }

    /// - Parameter descriptors: that the process may have open.
    package init(_ listener: Listener, descriptors: Int = DescriptorLimit.current) {
        self.init(connections: listener.connections(descriptors: descriptors))
    }

    /// A listener's share of the process' file descriptors. All together get five eighths at most, with their reserve below three quarters:
    /// the rest is for the relay, gorush, the store and other nodes.
    package enum Listener: CaseIterable, Sendable {
        /// Status page, metrics, health, feedback.
        case status
        case loopbackRelay
        /// For one operator.
        case admin

        func connections(descriptors: Int) -> Int {
            switch self {
            case .status, .loopbackRelay: min(max(descriptors / 4, 4), 1024)
            case .admin: min(max(descriptors / 32, 4), 64)
            }
        }
    }
}
