public import Core
public import WakuCrypto

/// Reassembles segmented messages. Bounded in memory and time, in total and per signer.
///
/// Segments belong together if they have the same hash of the whole and the same signer. Above the limit, the message that has not grown for the
/// longest time is dropped first: keys cost nothing, so neither a message's size nor its progress says anything about its sender, but keeping memory full
/// costs the sender of a flood its bytes anew, while an honest message is complete within seconds. A quarter of the memory is guaranteed to strangers,
/// the rest to known signers when they need it; a sender of many incomplete messages displaces its own.
public struct SegmentAssembler: Sendable {
    /// Limits of the memory and the age of incomplete messages. The defaults are those of a server.
    public struct Limits: Sendable {
        /// Limit of one message in bytes. Segments beyond it are ignored.
        public var wholeByteCount = 3 << 20
        /// Limit of the segments of one message. Segments that announce more are ignored; below 2, all are.
        public var segmentCount = 256
        /// Limit of all incomplete messages, with ``overhead`` for each.
        public var byteCount = 64 << 20
        /// The memory that an incomplete message takes besides its segments.
        public var overhead = 1_024
        /// Limit of the number of incomplete messages.
        public var wholeCount = 65_536
        /// Limit of the incomplete messages of one signer.
        public var byteCountBySigner = 8 << 20
        /// Limit of the number of incomplete messages of one signer.
        public var wholeCountBySigner = 4
        /// Incomplete messages are dropped when their first segment arrived longer ago than this.
        public var age = Duration.seconds(300)
        /// The limits of a server, whose largest messages are registrations.
        public init() {}

        /// Limits for a client, which receives answers of up to 4 MiB from servers that it queried. A phone's extension has little memory, and anyone can
        /// send segments.
        public static let answers: Limits = {
            var limits = Limits()
            limits.wholeByteCount = 5 << 20
            limits.byteCount = 16 << 20
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
        let isKnown: Bool
        /// Its place in the order of growth.
        var sequence: UInt64 = 0
    }

    /// Incomplete messages in the order in which they last grew, of known signers or of others.
    private struct Order {
        var keys: [UInt64: Key] = [:]
        /// No key has a lower sequence.
        var first: UInt64 = 0
        var byteCount = 0
    }

    private let limits: Limits
    private var wholes: [Key: Whole] = [:]
    private var bySigner: [PublicKey: (keys: Set<Key>, byteCount: Int)] = [:]
    /// Of strangers, and of known signers.
    private var orders = [Order(), Order()]
    private var sequence: UInt64 = 0
    /// Ordered by age; entries of messages that are gone, or have begun anew, are stale.
    private var ages: [(began: Timestamp, key: Key)] = []
    private var firstAge = 0
    /// Number of messages that were dropped because of the limits of all senders together.
    public private(set) var displacedCount = 0

    /// - Parameter limits: ``Limits/answers`` for a client.
    public init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Number of incomplete messages.
    public var count: Int { wholes.count }

    /// Adds a segment.
    ///
    /// - Parameters:
    ///   - isKnown: whether the signer is known: see the description of the type.
    ///   - sentAt: when the segment was sent; nil: now.
    ///   - now: the current time: incomplete messages older than the age limit are removed first.
    /// - Returns: the whole message if it is complete and its hash matches.
    public mutating func add(
        _ segment: SegmentMessage, from signer: PublicKey, isKnown: Bool = false, sentAt: Timestamp? = nil, at now: Timestamp
    ) -> Reassembled? {
        guard segment.count >= 2, segment.count <= limits.segmentCount, (0..<segment.count).contains(segment.index),
            segment.wholeHash.count == Keccak256.byteCount
        else { return nil }
        forgetOldWholes(at: now)
        let key = Key(wholeHash: segment.wholeHash, signer: signer)
        let sentAt = sentAt ?? now
        var whole = wholes[key] ?? Whole(began: now, count: segment.count, sentAt: sentAt, isKnown: isKnown)
        guard whole.count == segment.count, whole.segments[segment.index] == nil,
            whole.byteCount + segment.payload.count <= limits.wholeByteCount
        else { return nil }
        whole.segments[segment.index] = segment.payload
        whole.byteCount += segment.payload.count
        whole.sentAt = min(whole.sentAt, sentAt)
        guard whole.segments.count < whole.count else {
            // The last segment is not accounted for yet.
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
        while firstAge < ages.count,
            now.since(ages[firstAge].began) > limits.age || wholes[ages[firstAge].key]?.began != ages[firstAge].began
        {
            if let whole = wholes[ages[firstAge].key], whole.began == ages[firstAge].began { remove(ages[firstAge].key) }
            firstAge += 1
        }
        // Removes what was passed over, and stale entries in between, at a bounded cost for each addition.
        guard firstAge > 1_024 && firstAge > ages.count / 2 || ages.count > 2 * wholes.count + 1_024 else { return }
        ages = ages[firstAge...].filter { wholes[$0.key]?.began == $0.began }
        firstAge = 0
    }

    /// - Parameter newest: never removed: it has just grown.
    private mutating func makeRoom(besides newest: Key) {
        while let own = bySigner[newest.signer],
            own.keys.count > limits.wholeCountBySigner || own.byteCount > limits.byteCountBySigner,
            let oldest = own.keys.filter({ $0 != newest }).min(by: { wholes[$0]?.sequence ?? 0 < wholes[$1]?.sequence ?? 0 })
        {
            remove(oldest)
        }
        while wholes.count > limits.wholeCount || memory > limits.byteCount {
            let hasGuarantee = orders[1].byteCount > 0 && orders[0].byteCount <= limits.byteCount / 4
            guard let oldest = oldest(hasGuarantee ? 1 : 0) ?? oldest(hasGuarantee ? 0 : 1), oldest != newest else { return }
            remove(oldest)
            displacedCount += 1
        }
    }

    private var memory: Int { orders[0].byteCount + orders[1].byteCount }

    private mutating func oldest(_ index: Int) -> Key? {
        guard !orders[index].keys.isEmpty else { return nil }
        while orders[index].keys[orders[index].first] == nil { orders[index].first += 1 }
        return orders[index].keys[orders[index].first]
    }

    private mutating func keep(_ whole: Whole, _ key: Key, adding count: Int) {
        let index = whole.isKnown ? 1 : 0
        var whole = whole
        if wholes[key] == nil {
            orders[index].byteCount += limits.overhead
            ages.append((whole.began, key))
        } else {
            orders[index].keys[whole.sequence] = nil
        }
        sequence += 1
        whole.sequence = sequence
        if orders[index].keys.isEmpty { orders[index].first = sequence }
        orders[index].keys[sequence] = key
        orders[index].byteCount += count
        wholes[key] = whole
        bySigner[key.signer, default: ([], 0)].keys.insert(key)
        bySigner[key.signer]?.byteCount += count
    }

    private mutating func remove(_ key: Key) {
        guard let whole = wholes.removeValue(forKey: key) else { return }
        let index = whole.isKnown ? 1 : 0
        orders[index].keys[whole.sequence] = nil
        orders[index].byteCount -= whole.byteCount + limits.overhead
        bySigner[key.signer]?.keys.remove(key)
        bySigner[key.signer]?.byteCount -= whole.byteCount
        if bySigner[key.signer]?.keys.isEmpty == true { bySigner[key.signer] = nil }
    }
}
