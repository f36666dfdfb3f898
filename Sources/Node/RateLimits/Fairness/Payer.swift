package import Core
package import WakuCrypto

/// The party that pays for a piece of work. Shares of a bounded resource are divided among payers.
///
/// A sender's key is rarely a payer: keys cost nothing, queries and requests carry a new one each, and a relaying peer is not the author.
///
/// | work | payer |
/// |---|---|
/// | answers, key derivations | the registrant in question |
/// | notifications | the owner of the access token, and the device |
/// | registrations | the device token, and the key |
/// | requests over HTTP | the source address (IPv4 /24, IPv6 /64) |
/// | connections | the peer's address (IPv4 /24, IPv6 /64) |
package struct Payer: Hashable, Sendable {
    package enum Kind: UInt8, CaseIterable, Sendable {
        case registrant, owner, deviceToken, key, source, peer, unsigned
    }

    package let kind: Kind
    /// 16 bytes of a keyed hash of the kind and the identifying bytes.
    let digest: (high: UInt64, low: UInt64)

    /// 17 bytes: the kind, then the digest.
    package var bytes: [UInt8] {
        [kind.rawValue]
            + [digest.high, digest.low].flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) } }
    }

    package static func == (left: Payer, right: Payer) -> Bool { left.kind == right.kind && left.digest == right.digest }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(digest.low)
    }
}

extension Payer {
    /// - Parameter hash: at least 16 bytes of a hash; missing bytes count as 0.
    init(_ kind: Kind, hash: [UInt8]) {
        func number(from start: Int) -> UInt64 {
            (start..<start + 8).reduce(0) { $0 << 8 | UInt64($1 < hash.count ? hash[$1] : 0) }
        }
        self.init(kind: kind, digest: (number(from: 0), number(from: 8)))
    }
}

/// Makes payers. The hash is keyed, so that senders cannot choose keys that collide with those of others, and stored or reported payers do not
/// disclose tokens, keys or addresses.
package struct PayerHasher: Sendable {
    private let key: SymmetricKey

    /// - Parameter key: equal at all nodes that share limits.
    package init(key: SymmetricKey) {
        self.key = key
    }

    /// - Parameters:
    ///   - kind: the kind of payer; equal bytes of different kinds are different payers.
    ///   - bytes: identify the payer within its kind.
    package func payer(_ kind: Payer.Kind, _ bytes: [UInt8]) -> Payer {
        Payer(kind, hash: key.authenticationCode(of: [kind.rawValue] + bytes))
    }

    /// - Parameter block: the network of an address; nil if the address is unknown.
    package func payer(_ kind: Payer.Kind, _ block: AddressRange?) -> Payer { payer(kind, block?.bytes ?? []) }
}
