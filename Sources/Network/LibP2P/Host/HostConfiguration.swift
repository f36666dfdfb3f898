public import NIOCore

/// The settings of a ``Host``.
public struct HostConfiguration: Sendable {
    /// The program's name and version for the identify protocol.
    public var agentVersion = "waku-push"
    public var protocolVersion = "ipfs/0.1.0"
    /// The addresses to announce by identify instead of the listen addresses: for a node behind NAT.
    public var advertisedAddresses: [Multiaddr] = []

    /// The maximum number of inbound connections, in total and from one block of addresses (a /24 of IPv4 or a /64 of IPv6). When it is exceeded,
    /// the least useful idle connection is closed. The host lowers these limits to fit the process's file descriptor limit.
    public var inboundLimit = 200
    public var inboundLimitPerBlock = 16
    /// The maximum number of inbound handshakes in progress, in addition to the connections: in total and from one block.
    public var handshakeLimit = 64
    public var handshakeLimitPerBlock = 8
    /// Addresses to which only the total limits apply. Their connections are not closed in favor of others.
    public var exemptAddresses: [AddressRange] = []
    /// The maximum number of inbound and outbound connections together. Further ones are refused.
    public var connectionLimit = 300

    /// Timeout for the TCP connection.
    public var connectTimeout = TimeAmount.seconds(10)
    /// Timeout for each further step: negotiating the security protocol, the handshake, negotiating the muxer.
    public var stepTimeout = TimeAmount.seconds(10)
    /// Timeout for negotiating the protocol of a stream.
    public var negotiationTimeout = TimeAmount.seconds(10)
    /// A peer from which nothing was received for this long is pinged, and has as long to respond.
    public var keepAlive = TimeAmount.seconds(20)

    /// The maximum number of open streams per connection: opened by the peer, of these without negotiated protocol, and opened by this node.
    public var inboundStreamLimit = 256
    public var negotiatingStreamLimit = 64
    public var outboundStreamLimit = 256
    /// The maximum number of unread bytes from one peer. The stream that exceeds it is reset.
    public var bufferLimit = 4 * 1024 * 1024
    /// The maximum memory for all inbound connections together, in bytes: unread data, incomplete messages (with their full length), identify
    /// information and outbound data that peers do not read. When it is exceeded, the connections of the least useful peers are closed.
    public var inboundMemoryLimit = 128 * 1024 * 1024
    /// Timeout for the rest of an incomplete message of more than 64 KiB.
    public var partialMessageTimeout = TimeAmount.seconds(60)

    public init() {}

    /// The configuration with lower limits for inbound connections, so that these use at most half of the file descriptors.
    ///
    /// - Parameter count: The process's file descriptor limit.
    public func fitted(toDescriptors count: Int) -> HostConfiguration {
        var fitted = self
        let share = max(count / 2, 16)
        fitted.inboundLimit = min(inboundLimit, share * 3 / 4)
        fitted.handshakeLimit = min(handshakeLimit, share / 4)
        return fitted
    }

    var inboundLimits: InboundTable<ObjectIdentifier>.Limits {
        var limits = InboundTable<ObjectIdentifier>.Limits()
        limits.connections = inboundLimit
        limits.connectionsPerBlock = inboundLimitPerBlock
        limits.handshakes = handshakeLimit
        limits.handshakesPerBlock = handshakeLimitPerBlock
        limits.exempt = exemptAddresses
        return limits
    }

    var connectionSettings: ConnectionHandler.Settings {
        var settings = ConnectionHandler.Settings()
        settings.stepLimit = stepTimeout
        settings.negotiationLimit = negotiationTimeout
        settings.keepAlive = keepAlive
        settings.negotiatingStreams = negotiatingStreamLimit
        settings.partialMessageTimeout = partialMessageTimeout
        settings.yamux.inboundStreams = inboundStreamLimit
        settings.yamux.outboundStreams = outboundStreamLimit
        settings.yamux.bufferedBytes = bufferLimit
        return settings
    }
}
