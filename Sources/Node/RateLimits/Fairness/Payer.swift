import Foundation
package import WakuCrypto

/// The party that pays for a piece of work. Shares of a bounded resource are divided among payers.
///
/// A sender's key is rarely a payer: keys cost nothing, queries and requests carry a new one each, and a relaying peer is not the author.
///
/// | work | payer |
/// |---|---|
/// | answers to queries, key derivations | the registrant in question |
/// | notifications | the owner of the access token, and the device |
/// | registrations | the device token, and the key |
/// | requests over HTTP | the source address (IPv4 /24, IPv6 /64) |
/// | messages of a storage server | the storage server |
/// | connections | the peer's address (IPv4 /24, IPv6 /64) |
package struct Payer: Hashable, Sendable {
    package enum Kind: UInt8, CaseIterable, Sendable {
        case registrant, owner, device, deviceToken, key, source, storageServer, peer, unsigned
    }

    package let kind: Kind
    /// 16 bytes of a keyed hash of the kind and the identifying bytes.
    let digest: (high: UInt64, low: UInt64)

    /// - Parameter hash: at least 16 bytes of a hash; missing bytes count as 0.
    init(_ kind: Kind, hash: [UInt8]) {
        func number(from start: Int) -> UInt64 {
            (start..<start + 8).reduce(0) { $0 << 8 | UInt64($1 < hash.count ? hash[$1] : 0) }
        }
        self.kind = kind
        digest = (number(from: 0), number(from: 8))
    }

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

    /// - Parameter address: an IPv4 or IPv6 address in text, without a port. Texts that are not addresses are payers of their own.
    package func source(_ address: String) -> Payer { payer(.source, Self.network(of: address) ?? Array(address.utf8)) }

    package func peer(_ address: String) -> Payer { payer(.peer, Self.network(of: address) ?? Array(address.utf8)) }

    /// The network of an address: 3 bytes for IPv4 (/24, including IPv4-mapped IPv6), 8 bytes for IPv6 (/64); nil for other texts.
    static func network(of address: String) -> [UInt8]? {
        // A zone, as in fe80::1%eth0, is not part of the address.
        let text = String(address.prefix { $0 != "%" })
        var short = in_addr()
        if inet_pton(AF_INET, text, &short) == 1 { return withUnsafeBytes(of: &short) { Array($0.prefix(3)) } }
        var long = in6_addr()
        guard inet_pton(AF_INET6, text, &long) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: &long) { Array($0) }
        let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        return Array(isMapped ? bytes[12..<15] : bytes[0..<8])
    }
}
