public import NIOCore

/// How a ``Host`` behaves.
public struct HostConfiguration: Sendable {
    /// What identify tells of the program.
    public var agentVersion = "waku-push"
    public var protocolVersion = "ipfs/0.1.0"
    /// What identify tells instead of the addresses that are listened on: for a node behind a translation of addresses.
    public var advertisedAddresses: [Multiaddr] = []

    /// Connections that others may open, with those that are not secured yet: no more than this in all, from one IP address, and not secured.
    public var inboundLimit = 200
    public var inboundLimitPerAddress = 16
    public var handshakeLimit = 32
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
    /// Of all peers that dialled together: bytes of messages longer than 64 KiB of which a part has come. Beyond it their streams are reset.
    public var inboundPartLimit = 64 * 1024 * 1024
    /// For the rest of such a message.
    public var partTimeout = TimeAmount.seconds(60)

    public init() {}

    var connectionSettings: ConnectionHandler.Settings {
        var settings = ConnectionHandler.Settings()
        settings.stepLimit = stepTimeout
        settings.negotiationLimit = negotiationTimeout
        settings.keepAlive = keepAlive
        settings.negotiatingStreams = negotiatingStreamLimit
        settings.yamux.inboundStreams = inboundStreamLimit
        settings.yamux.outboundStreams = outboundStreamLimit
        settings.yamux.bufferedBytes = bufferLimit
        return settings
    }
}
