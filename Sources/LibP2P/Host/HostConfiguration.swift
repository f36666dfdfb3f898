public import NIOCore

/// How a ``Host`` behaves.
public struct HostConfiguration: Sendable {
    /// What identify tells of the program.
    public var agentVersion = "waku-push"
    public var protocolVersion = "ipfs/0.1.0"
    /// What identify tells instead of the addresses that are listened on: for a node behind a translation of addresses.
    public var advertisedAddresses: [Multiaddr] = []

    /// Connections that others may open: in all, and from one block of addresses, a /24 of IPv4 or a /64 of IPv6. When there are more, the least useful
    /// idle one is closed. A host lowers them to what the process's limit of descriptors allows.
    public var inboundLimit = 200
    public var inboundLimitPerBlock = 16
    /// Those of them that are not secured yet, beside those that are: in all, and from one block.
    public var handshakeLimit = 64
    public var handshakeLimitPerBlock = 8
    /// From these addresses only the limits in all count, and their connections are not closed for others.
    public var exemptAddresses: [AddressRange] = []
    /// Connections either way, beyond which no others are taken.
    public var connectionLimit = 300

    /// For TCP to connect.
    public var connectTimeout = TimeAmount.seconds(10)
    /// For each step after that: agreeing on a security, the handshake, agreeing on a muxer.
    public var stepTimeout = TimeAmount.seconds(10)
    /// For a peer to agree on a stream's protocol.
    public var negotiationTimeout = TimeAmount.seconds(10)
    /// After so long without a byte from a peer it is asked for one, and has as long to answer.
    public var keepAlive = TimeAmount.seconds(20)

    /// Streams that a peer may have open with us at a time, those that have agreed on no protocol yet, and those that we may have with it.
    public var inboundStreamLimit = 256
    public var negotiatingStreamLimit = 64
    public var outboundStreamLimit = 256
    /// Bytes from one peer that nobody has read yet. Beyond it the stream that they are for is reset.
    public var bufferLimit = 4 * 1024 * 1024
    /// What all peers that dialled together make this node hold: data that nobody has read yet, messages of which a part has come (with their whole
    /// length), what they said of themselves, and what they do not take. Beyond it the connections of the least deserving are closed.
    public var inboundMemoryLimit = 128 * 1024 * 1024
    /// For the rest of a message of more than 64 KiB of which a part has come.
    public var partTimeout = TimeAmount.seconds(60)

    public init() {}

    /// With the limits on connections from outside lowered, so that these leave half of the descriptors to all else that the process does.
    ///
    /// - Parameter count: Descriptors that the process may have open.
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
        settings.partTimeout = partTimeout
        settings.yamux.inboundStreams = inboundStreamLimit
        settings.yamux.outboundStreams = outboundStreamLimit
        settings.yamux.bufferedBytes = bufferLimit
        return settings
    }
}
