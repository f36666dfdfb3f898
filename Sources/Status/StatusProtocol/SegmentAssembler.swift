public import Core
import Waku
public import WakuCrypto

/// Reassembles segmented messages. Bounded in memory and time, in total and per signer.
///
/// Segments belong together if they have the same hash of the whole and the same signer. Above the limit, the message with the smallest received
/// share is dropped first, then the one with the fewest bytes, then the oldest. So fragments from throw-away keys do not displace a message that an
/// honest sender has partly sent, and a sender of many incomplete messages displaces its own.
public struct SegmentAssembler: Sendable {
    /// Limits of the memory and the age of incomplete messages. The defaults are those of a server.
    public struct Limits: Sendable {
        /// Limit of one message in bytes. Segments beyond it are ignored.
        public var wholeByteCount = 3 << 20
        /// Limit of the segments of one message. Segments that announce more are ignored.
        public var segmentCount = 256
        /// Limit of all incomplete messages.
        public var byteCount = 64 << 20
        /// Limit of the number of incomplete messages.
        public var wholeCount = 1_024
        /// Limit of the incomplete messages of one signer.
        public var byteCountBySigner = 8 << 20
        /// Limit of the number of incomplete messages of one signer.
        public var wholeCountBySigner = 4
        /// Incomplete messages are dropped when their first segment arrived longer ago than this.
        public var age = Duration.seconds(300)
        /// The limits of a server, whose largest messages are registrations.
        public init() {}

        /// Limits for a client, which receives answers of up to 4 MiB from servers that it queried.
        public static let answers: Limits = {
            var limits = Limits()
            limits.wholeByteCount = 5 << 20
            limits.byteCountBySigner = 16 << 20
            return limits
        }()
    }

    /// A message that was put together.
    public struct Reassembled: Hashable, Sendable {
        /// The concatenated segments: an encoded envelope. Their Keccak-256 is the announced one.
        public let bytes: [UInt8]
        /// When the first of its segments was sent.
        public let sentAt: Timestamp
    }

    private struct Key: Hashable {
        let wholeHash: [UInt8]
        let signer: PublicKey
    }

    private struct Whole {
        let began: Timestamp
        let count: Int
        var sentAt: Timestamp
        var segments: [Int: [UInt8]] = [:]
        var byteCount = 0

        /// Whether this message is dropped before the other one.
        func isWorth(lessThan other: Whole) -> Bool {
            let (part, otherPart) = (segments.count * other.count, other.segments.count * count)
            if part != otherPart { return part < otherPart }
            if byteCount != other.byteCount { return byteCount < other.byteCount }
            return began < other.began
        }
    }

    private let limits: Limits
    private var wholes: [Key: Whole] = [:]
    private var bySigner: [PublicKey: (keys: Set<Key>, byteCount: Int)] = [:]
    private var byteCount = 0

    /// - Parameter limits: ``Limits/answers`` for a client.
    public init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Number of incomplete messages.
    public var count: Int { wholes.count }

    /// Adds a segment.
    ///
    /// - Parameters:
    ///   - sentAt: when the segment was sent; nil: now.
    ///   - now: the current time: incomplete messages older than the age limit are removed first.
    /// - Returns: the whole message if it is complete and its hash matches.
    public mutating func add(
        _ segment: SegmentMessage, from signer: PublicKey, sentAt: Timestamp? = nil, at now: Timestamp
    ) -> Reassembled? {
        guard (2...limits.segmentCount).contains(segment.count), (0..<segment.count).contains(segment.index),
            segment.wholeHash.count == Keccak256.byteCount
        else { return nil }
        forgetOldWholes(at: now)
        let key = Key(wholeHash: segment.wholeHash, signer: signer)
        let sentAt = sentAt ?? now
        var whole = wholes[key] ?? Whole(began: now, count: segment.count, sentAt: sentAt)
        guard whole.count == segment.count, whole.segments[segment.index] == nil,
            whole.byteCount + segment.payload.count <= limits.wholeByteCount
        else { return nil }
        whole.segments[segment.index] = segment.payload
        whole.byteCount += segment.payload.count
        whole.sentAt = min(whole.sentAt, sentAt)
        guard whole.segments.count < whole.count else {
            remove(key)
            let bytes = (0..<whole.count).reduce(into: []) { $0 += whole.segments[$1] ?? [] }
            return Keccak256.hash(bytes) == segment.wholeHash ? Reassembled(bytes: bytes, sentAt: whole.sentAt) : nil
        }
        keep(whole, key, adding: segment.payload.count)
        makeRoom(besides: key)
        return nil
    }

    /// Runs before a segment is added, so that it cannot complete a message over the age limit.
    private mutating func forgetOldWholes(at now: Timestamp) {
        for (key, whole) in wholes where now.since(whole.began) > limits.age { remove(key) }
    }

    /// - Parameter newest: never removed: a message that has just begun is always less complete than older ones.
    private mutating func makeRoom(besides newest: Key) {
        while let own = bySigner[newest.signer],
            own.keys.count > limits.wholeCountBySigner || own.byteCount > limits.byteCountBySigner,
            let least = least(of: own.keys, besides: newest)
        {
            remove(least)
        }
        while wholes.count > limits.wholeCount || byteCount > limits.byteCount, let least = least(of: wholes.keys, besides: newest) {
            remove(least)
        }
    }

    private func least(of keys: some Collection<Key>, besides newest: Key) -> Key? {
        keys.lazy.filter { $0 != newest }.min { left, right in
            guard let left = wholes[left], let right = wholes[right] else { return false }
            return left.isWorth(lessThan: right)
        }
    }

    private mutating func keep(_ whole: Whole, _ key: Key, adding count: Int) {
        wholes[key] = whole
        byteCount += count
        bySigner[key.signer, default: ([], 0)].keys.insert(key)
        bySigner[key.signer]?.byteCount += count
    }

    private mutating func remove(_ key: Key) {
        guard let whole = wholes.removeValue(forKey: key) else { return }
        byteCount -= whole.byteCount
        bySigner[key.signer]?.keys.remove(key)
        bySigner[key.signer]?.byteCount -= whole.byteCount
        if bySigner[key.signer]?.keys.isEmpty == true { bySigner[key.signer] = nil }
    }
}
