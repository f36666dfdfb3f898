import WakuCrypto

/// A gossip topic of the network, such as `/waku/2/rs/16/32`: cluster 16, shard 32. See ``RelayShard``.
public struct PubsubTopic: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The topic's full name.
    public let rawValue: String
    /// - Parameter rawValue: The topic's full name; any text is accepted.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The Status app's default shard.
    public static let statusDefault = PubsubTopic(rawValue: "/waku/2/rs/16/32")
    /// The topic's full name.
    public var description: String { rawValue }
}

/// The first 4 bytes of Keccak-256 of a topic string, as a big-endian number. Messages on the network carry this instead of the string.
public struct TopicTag: RawRepresentable, Hashable, Sendable {
    /// The 4 bytes as a big-endian number.
    public let rawValue: UInt32
    /// - Parameter rawValue: The 4 bytes as a big-endian number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The tag of a topic string such as a chat's name, which is hashed as UTF-8.
    public init(of topicString: String) {
        rawValue = Keccak256.hash(Array(topicString.utf8)).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }
}

/// The topic by which receivers select messages, 23/WAKU2-TOPICS. Messages of Status have `/waku/1/0x` + hex(first 4 bytes of Keccak-256(topic
/// string)) + `/rfc26`, see ``TopicTag``.
public struct ContentTopic: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The topic's text.
    public let rawValue: String
    /// - Parameter rawValue: The topic's text; any form is accepted.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The content topic of a tag, with 8 lower-case digits.
    public init(_ tag: TopicTag) {
        let digits = String(tag.rawValue, radix: 16)
        rawValue = Self.prefix + String(repeating: "0", count: 8 - digits.count) + digits + Self.suffix
    }

    /// The topic's text.
    public var description: String { rawValue }

    private static let prefix = "/waku/1/0x"
    private static let suffix = "/rfc26"

    /// The tag in a topic of the form `/waku/1/0x…/rfc26`; nil for other forms. Digits of either case, and more than 8, are accepted: only the first
    /// 4 bytes count.
    public var tag: TopicTag? {
        var copy = rawValue
        return copy.withUTF8(Self.tag)
    }

    /// The tag by which a node finds the protocols that listen on the topic: ``tag``, or FNV-1a of the whole text for topics of other forms. Computed
    /// for each message, most of which are for nobody here; a sender can as well use a topic that is listened on as find one with its tag.
    public var listeningTag: TopicTag {
        var copy = rawValue
        return copy.withUTF8(Self.listeningTag)
    }

    static func listeningTag(_ utf8: UnsafeBufferPointer<UInt8>) -> TopicTag {
        tag(utf8) ?? TopicTag(rawValue: utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 })
    }

    static func tag(_ utf8: UnsafeBufferPointer<UInt8>) -> TopicTag? {
        let prefixCount = 10
        let suffixCount = 6
        guard utf8.count >= prefixCount + 8 + suffixCount, utf8.prefix(prefixCount).elementsEqual(Self.prefix.utf8),
            utf8.suffix(suffixCount).elementsEqual(Self.suffix.utf8)
        else { return nil }
        let digits = utf8[prefixCount..<utf8.count - suffixCount]
        guard digits.count.isMultiple(of: 2) else { return nil }
        var value: UInt32 = 0
        for (offset, digit) in digits.enumerated() {
            guard let nibble = hexNibble(digit) else { return nil }
            if offset < 8 { value = value << 4 | UInt32(nibble) }
        }
        return TopicTag(rawValue: value)
    }
}
