import WakuCrypto

/// Whose messages a subscription is about: 33 bytes.
///
///     prefix(1) ‖ key(32)          05: a session id, the key is X25519. Others (03: a group): the key is Ed25519
///
/// Kept in five words rather than an array: a node holds one for each of a million subscriptions.
package struct AccountID: Hashable, Sendable, CustomStringConvertible {
    package static let byteCount = 33
    package static let sessionPrefix: UInt8 = 0x05

    package let prefix: UInt8
    /// The key as big-endian words.
    private let word0: UInt64, word1: UInt64, word2: UInt64, word3: UInt64

    /// nil unless there are 33 bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount, let prefix = bytes.first else { return nil }
        self.prefix = prefix
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        for byte in bytes.dropFirst() {
            // 256 bits, shifted left by a byte.
            words.0 = words.0 << 8 | words.1 >> 56
            words.1 = words.1 << 8 | words.2 >> 56
            words.2 = words.2 << 8 | words.3 >> 56
            words.3 = words.3 << 8 | UInt64(byte)
        }
        (word0, word1, word2, word3) = words
    }

    package var isSessionID: Bool { prefix == Self.sessionPrefix }

    /// 32 bytes.
    package var key: [UInt8] {
        [word0, word1, word2, word3].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) } }
    }

    /// 33 bytes.
    package var bytes: [UInt8] { [prefix] + key }

    /// 66 lower-case hexadecimal digits.
    package var hex: String { hexString(bytes) }

    /// Where the account is on the ring of swarms: the XOR of the key's four big-endian words.
    package var swarmPosition: UInt64 { word0 ^ word1 ^ word2 ^ word3 }

    /// A hash under a secret key, so that nobody can choose accounts that collide. Cheaper than `Hasher`, for tables of a million accounts.
    package func hash(keyedBy key: AccountHashKey) -> UInt64 {
        Self.folded(word0 ^ key.word0, word1 ^ key.word1 ^ UInt64(prefix)) ^ Self.folded(word2 ^ key.word2, word3 ^ key.word3)
    }

    private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    package var description: String { "<redacted>" }
}

/// Random numbers that nobody else knows, for ``AccountID/hash(keyedBy:)``.
package struct AccountHashKey: Sendable {
    fileprivate let word0: UInt64, word1: UInt64, word2: UInt64, word3: UInt64

    package init() {
        (word0, word1) = (.random(in: .min ... .max), .random(in: .min ... .max))
        (word2, word3) = (.random(in: .min ... .max), .random(in: .min ... .max))
    }
}
