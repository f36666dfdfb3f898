import Core
package import NIOCore

/// Timeouts for the clients of an HTTP listener, and its connection limit.
package struct HTTPLimits: Hashable, Sendable {
    /// From accepting the connection to the end of the first request's head.
    package let headerTimeout = TimeAmount.seconds(10)
    /// From the end of a request's head to the end of its body.
    package let bodyTimeout = TimeAmount.seconds(30)
    /// From a response to the end of the next request's head.
    package let idleTimeout = TimeAmount.seconds(60)
    /// From the start of a response until all of it is sent.
    package var responseTimeout = TimeAmount.seconds(60)
    /// From the beginning of the listener's stop to the end of its last request. It is less than what a node has for its stop.
    package var stopTimeout = TimeAmount.seconds(2)
    /// When it is exceeded, a connection of the network with most is closed: the one that has been inactive for longest.
    package var connections: Int
    /// Additional connections that are accepted while excess ones are being closed or all are busy. Beyond it nothing is accepted until a
    /// connection ends.
    package var reserve: Int { max(connections / 8, 4) }

    package init(connections: Int) {
        self.connections = connections
    }

    package init(_ listener: Listener, descriptors: Int = DescriptorLimit.current) {
        self.init(connections: listener.connections(descriptors: descriptors))
    }

    /// The listeners. Together they get at most half of `DescriptorLimit.forListeners(of:)`; the other half is for libp2p.
    package enum Listener: CaseIterable, Sendable {
        /// The paths of `HealthServer`.
        case status
        case loopbackRelay
        /// For one operator.
        case admin
        /// Session's clients and onion routers.
        case session

        /// The connections that fit into the listener's share with their ``HTTPLimits/reserve``.
        func connections(descriptors: Int) -> Int {
            let (divisor, maximum) =
                switch self {
                case .status, .loopbackRelay: (8, 1024)
                case .admin: (32, 64)
                case .session: (16, 1024)
                }
            let share = max(DescriptorLimit.forListeners(of: descriptors) / divisor, 8)
            return min(share * 8 / 9, share - 4, maximum)
        }
    }
}
