/// Totals of a relay with peers, since it was created.
public struct RelayTraffic: Hashable, Sendable {
    /// Bytes received on all connections, as on the wire.
    public var bytesReceived = 0
    /// Bytes sent on all connections, as on the wire.
    public var bytesSent = 0
    /// Messages received that were valid and forwarded.
    public var accepted = 0
    /// Messages received that were dropped without lowering the score of their senders, for example because of their timestamp.
    public var ignored = 0
    /// Messages received that were invalid.
    public var rejected = 0
    /// Messages received that were already known.
    public var duplicates = 0
    /// Messages received on pubsub topics that are not subscribed.
    public var foreign = 0
    /// Messages received and dropped because too many were waiting for validation.
    public var overloaded = 0
    /// Messages that this node published.
    public var published = 0
    /// Copies of messages sent to peers, those of this node's own messages included.
    public var forwarded = 0
    /// Messages that peers announced and did not send when they were requested.
    public var brokenPromises = 0
    /// Grafts within the backoff after a prune.
    public var graftFloods = 0
    /// Peers disconnected because their score fell below the graylist threshold.
    public var graylisted = 0

    /// All totals at 0.
    public init() {}

    /// Adds each total, for several relays used as one.
    public static func + (left: RelayTraffic, right: RelayTraffic) -> RelayTraffic {
        var sum = left
        for field in [
            \RelayTraffic.bytesReceived, \.bytesSent, \.accepted, \.ignored, \.rejected, \.duplicates, \.foreign, \.overloaded, \.published,
            \.forwarded, \.brokenPromises, \.graftFloods, \.graylisted,
        ] { sum[keyPath: field] += right[keyPath: field] }
        return sum
    }
}
