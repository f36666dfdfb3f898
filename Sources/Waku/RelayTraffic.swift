/// What a relay among peers has seen since it began.
public struct RelayTraffic: Hashable, Sendable {
    /// On the wire.
    public var bytesReceived = 0
    public var bytesSent = 0
    /// Messages that came: valid and sent on, not to be sent on, invalid, known, on topics of no concern, beyond what could be looked at.
    public var accepted = 0
    public var ignored = 0
    public var rejected = 0
    public var duplicates = 0
    public var foreign = 0
    public var overloaded = 0
    public var published = 0
    /// Copies that went out, own ones too.
    public var forwarded = 0
    /// What peers did wrong besides.
    public var brokenPromises = 0
    public var graftFloods = 0
    public var greyListed = 0

    public init() {}

    public static func + (left: RelayTraffic, right: RelayTraffic) -> RelayTraffic {
        var sum = left
        for field in [
            \RelayTraffic.bytesReceived, \.bytesSent, \.accepted, \.ignored, \.rejected, \.duplicates, \.foreign, \.overloaded, \.published,
            \.forwarded, \.brokenPromises, \.graftFloods, \.greyListed,
        ] { sum[keyPath: field] += right[keyPath: field] }
        return sum
    }
}
