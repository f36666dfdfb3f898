public import Core
public import NIOCore

/// The settings of a ``Host``.
public struct HostConfiguration: Sendable {
    /// The program's name and version, reported by the identify protocol.
    public var agentVersion = "waku-push"
    /// The version of the network, reported by the identify protocol.
    public var protocolVersion = "ipfs/0.1.0"
    /// The addresses to report by the identify protocol instead of the listen addresses, for a node behind NAT.
    public var advertisedAddresses: [Multiaddr] = []

    /// The maximum number of inbound connections. A further one replaces the least useful one, or is refused when all are needed. The host lowers
    /// this limit to fit the process's file descriptor limit, see ``fitted(toDescriptors:)``.
    public var inboundLimit = 200
    /// The maximum number of inbound connections from one block of addresses: a /24 of IPv4 or a /64 of IPv6.
    public var inboundLimitPerBlock = 16
    /// The maximum number of inbound handshakes in progress, in addition to ``inboundLimit``, and lowered in the same way. A further one replaces one
    /// from a block of addresses that has more of them, or is refused.
    public var handshakeLimit = 64
    /// The maximum number of inbound handshakes in progress from one block of addresses.
    public var handshakeLimitPerBlock = 8
    /// Addresses to which the limits per block do not apply. Connections from them are not closed in favor of others.
    public var exemptAddresses: [AddressRange] = []
    /// Called for each connection of a peer that was refused, or was closed in favor of another, with the peer's block of addresses; nil for a transport
    /// without addresses. It is called on the event loops of connections and must not block.
    public var onRefusal: (@Sendable (AddressRange?) -> Void)?
    /// The maximum number of inbound and outbound connections together. Further ones are refused.
    public var connectionLimit = 300

    /// Timeout for the TCP connection.
    public var connectTimeout = TimeAmount.seconds(10)
    /// Timeout for each step of securing a connection: negotiating the security protocol, the handshake, negotiating the muxer.
    public var stepTimeout = TimeAmount.seconds(10)
    /// Timeout for negotiating the protocol of a stream.
    public var negotiationTimeout = TimeAmount.seconds(10)
    /// A peer from which nothing was received for this long is pinged, and must respond within the same time.
    public var keepAlive = TimeAmount.seconds(20)

    /// The maximum number of open streams per connection that the peer opened. Further ones are reset.
    public var inboundStreamLimit = 256
    /// The maximum number of streams per connection that the peer opened and whose protocol is not negotiated yet. Further ones are reset.
    public var negotiatingStreamLimit = 64
    /// The maximum number of open streams per connection that this node opened. Opening more throws ``ConnectionError/tooManyStreams``.
    public var outboundStreamLimit = 256
    /// The maximum number of received and unread bytes per connection. The stream that exceeds it is reset.
    public var bufferLimit = 4 * 1024 * 1024
    /// The maximum memory for all inbound connections together, in bytes: unread data, incomplete messages (with their full length), identify
    /// information and outbound data that peers do not read. When it is exceeded, the connections of the least useful peers are closed. A gossip relay
    /// counts what waits for its peers, too, each message once, and drops of it first.
    public var inboundMemoryLimit = 128 * 1024 * 1024
    /// Timeout for the rest of an incomplete message of more than 64 KiB, on a stream that the peer opened over an inbound connection.
    public var partialMessageTimeout = TimeAmount.seconds(60)
    /// How long a stream of a peer's identify push counts as open after its message.
    var pushPause = Duration.seconds(1)
    /// The time between a failed identify request to a peer that this node dialed and the next one.
    var identifyPause = Duration.seconds(60)

    /// The settings of a relay node. Limits allow 200 inbound connections and 128 MiB of memory for them.
    public init() {}

    /// The configuration with lower limits for inbound connections, so that these use at most half of the file descriptors
    /// that listeners may use, see `DescriptorLimit`.
    ///
    /// - Parameter count: The process's file descriptor limit.
    public func fitted(toDescriptors count: Int) -> HostConfiguration {
        var fitted = self
        let share = DescriptorLimit.forListeners(of: count) / 2
        fitted.inboundLimit = min(inboundLimit, share * 3 / 4)
        fitted.handshakeLimit = min(handshakeLimit, share / 4)
        return fitted
    }

    var yamuxLimits: YamuxSession.Limits {
        var limits = YamuxSession.Limits()
        limits.inboundStreams = inboundStreamLimit
        limits.outboundStreams = outboundStreamLimit
        limits.bufferedBytes = bufferLimit
        return limits
    }
}
