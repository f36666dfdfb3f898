import WakuCrypto

/// The account whose messages a subscription reports: 33 bytes.
///
///     prefix(1) ‖ key(32)          prefix 05: a session id with an X25519 key; others, such as 03 for groups: an Ed25519 key
///
/// Stored in five words instead of an array, because a node holds one for each of a million subscriptions.
package struct AccountID: Hashable, Sendable, CustomStringConvertible {
    package static let byteCount = 33
    package static let sessionPrefix: UInt8 = 0x05

    package let prefix: UInt8
    /// The key as big-endian words.
    private let word0: UInt64, word1: UInt64, word2: UInt64, word3: UInt64

    /// nil unless there are 33 bytes.
    package init?(_ bytes: [UInt8]) {
        guard let account = bytes.withUnsafeBytes(Self.init(reading:)) else { return nil }
        self = account
    }

    /// nil unless there are 33 bytes.
    package init?(_ bytes: ArraySlice<UInt8>) {
        guard let account = bytes.withUnsafeBytes(Self.init(reading:)) else { return nil }
        self = account
    }

    private init?(reading bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        prefix = bytes[0]
        func word(_ index: Int) -> UInt64 { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1 + 8 * index, as: UInt64.self)) }
        (word0, word1, word2, word3) = (word(0), word(1), word(2), word(3))
    }

    package var isSessionID: Bool { prefix == Self.sessionPrefix }

    /// The account's key without the prefix, 32 bytes.
    package var key: [UInt8] {
        withUnsafeBytes(of: (word0.bigEndian, word1.bigEndian, word2.bigEndian, word3.bigEndian)) { Array($0) }
    }

    /// `prefix ‖ key`, 33 bytes.
    package var bytes: [UInt8] { [prefix] + key }

    /// The first 8 bytes of the key, big-endian. Evenly distributed unless keys are chosen deliberately.
    package var leadingBits: UInt64 { word0 }

    /// 66 lower-case hexadecimal digits.
    package var hex: String { hexString(bytes) }

    /// The account's position on the ring of swarms: the XOR of the key's four big-endian words.
    package var swarmPosition: UInt64 { word0 ^ word1 ^ word2 ^ word3 }

    /// A hash under a secret key, so that attackers cannot choose colliding accounts. Cheaper than `Hasher`, for tables of a million accounts.
    package func hash(keyedBy key: AccountHashKey) -> UInt64 {
        Self.folded(word0 ^ key.word0, word1 ^ key.word1 ^ UInt64(prefix)) ^ Self.folded(word2 ^ key.word2, word3 ^ key.word3)
    }

    private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    package var description: String { "<redacted>" }
}

/// Secret random numbers for ``AccountID/hash(keyedBy:)``.
package struct AccountHashKey: Sendable {
    fileprivate let word0: UInt64, word1: UInt64, word2: UInt64, word3: UInt64

    package init() {
        (word0, word1) = (.random(in: .min ... .max), .random(in: .min ... .max))
        (word2, word3) = (.random(in: .min ... .max), .random(in: .min ... .max))
    }
}
