public import Waku
public import WakuCrypto

/// Puts segments together again. Bounded in memory and time: the oldest whole gives way when room is short.
///
/// Segments belong together when they name the same whole and were sent by the same signer.
public struct SegmentAssembler: Sendable {
    public struct Limits: Sendable {
        public var wholeByteCount = 2 << 20
        public var segmentCount = 256
        /// Of all that is incomplete.
        public var byteCount = 16 << 20
        public var wholeCount = 64
        public var age = Duration.seconds(300)
        public init() {}
    }

    private struct Key: Hashable {
        let wholeHash: [UInt8]
        let signer: PublicKey
    }

    private struct Whole {
        let began: Timestamp
        var segments: [[UInt8]?]
        var missing: Int
        var byteCount = 0
    }

    private let limits: Limits
    private var wholes: [Key: Whole] = [:]
    private var byteCount = 0

    public init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// The whole that this segment completes, once its hash fits.
    public mutating func add(_ segment: SegmentMessage, from signer: PublicKey, at now: Timestamp) -> [UInt8]? {
        guard (2...limits.segmentCount).contains(segment.count), (0..<segment.count).contains(segment.index),
            segment.wholeHash.count == Keccak256.byteCount
        else { return nil }
        forgetOldWholes(at: now)
        let key = Key(wholeHash: segment.wholeHash, signer: signer)
        var whole = wholes[key] ?? Whole(began: now, segments: Array(repeating: nil, count: segment.count), missing: segment.count)
        guard whole.segments.count == segment.count, whole.segments[segment.index] == nil,
            whole.byteCount + segment.payload.count <= limits.wholeByteCount
        else { return nil }
        whole.segments[segment.index] = segment.payload
        whole.missing -= 1
        whole.byteCount += segment.payload.count
        guard whole.missing > 0 else {
            remove(key)
            let bytes = whole.segments.reduce(into: []) { $0 += $1 ?? [] }
            return Keccak256.hash(bytes) == segment.wholeHash ? bytes : nil
        }
        wholes[key] = whole
        byteCount += segment.payload.count
        makeRoom()
        return nil
    }

    /// Before a segment is looked at: it must not complete a whole that is too old.
    private mutating func forgetOldWholes(at now: Timestamp) {
        for (key, whole) in wholes where now.since(whole.began) > limits.age { remove(key) }
    }

    private mutating func makeRoom() {
        while wholes.count > limits.wholeCount || byteCount > limits.byteCount {
            guard let oldest = wholes.min(by: { $0.value.began < $1.value.began })?.key else { return }
            remove(oldest)
        }
    }

    private mutating func remove(_ key: Key) {
        guard let whole = wholes.removeValue(forKey: key) else { return }
        byteCount -= whole.byteCount
    }
}
