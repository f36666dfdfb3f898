public import Waku
public import WakuCrypto
import Core

/// Why a node record or node list is invalid.
public enum ENRError: Error, Hashable, Sendable {
    /// The syntax, or the value of a required entry, is invalid.
    case malformed
    /// The record, URL or DNS entry is longer than its limit.
    case tooLong
    /// The signature is missing or invalid.
    case badSignature
    /// An identity scheme other than `v4`.
    case unknownScheme
    /// A DNS entry does not match its hash.
    case wrongHash
}

/// A signed record of a node's addresses: an Ethereum node record, EIP-778, with Waku's extensions, 31/WAKU2-ENR.
///
///     RLP list(signature(64) ‖ sequence number ‖ key ‖ value ‖ key ‖ value …), keys in order, at most 300 bytes
///
/// These keys are read: `id`, which must be `v4`; `secp256k1`, 33 bytes; `ip` 4, `tcp` 2, `ip6` 16, `tcp6` 2; `multiaddrs`, each with a length of
/// 2 bytes and in binary form; `rs` or `rsv`, see `RelayShards`.
public struct NodeRecord: Hashable, Sendable {
    /// The maximum length of a record in binary form, set by EIP-778.
    public static let maximumByteCount = 300
    static let maximumAddressCount = 16

    /// The number of the record, which its node increases with each change.
    public let sequence: UInt64
    /// The node's secp256k1 key, which signed the record and determines the peer id.
    public let publicKey: PublicKey
    /// The IPv4 address, 4 bytes; nil without a valid entry `ip`.
    public private(set) var ip4: [UInt8]?
    /// The TCP port for ``ip4``, and for ``ip6`` without ``tcp6``; nil without a valid entry `tcp`.
    public private(set) var tcp: UInt16?
    /// The IPv6 address, 16 bytes; nil without a valid entry `ip6`.
    public private(set) var ip6: [UInt8]?
    /// The TCP port for ``ip6``; nil without a valid entry `tcp6`.
    public private(set) var tcp6: UInt16?
    /// Further addresses as multiaddrs in binary form, at most 16, not validated. By the specification they have no peer id.
    public private(set) var multiaddrs: [[UInt8]] = []
    /// The shards that the node relays; nil when it does not report them.
    public private(set) var shards: RelayShards?

    /// Parses the text form, `enr:` and base64, and verifies the signature.
    public init(parsing text: some StringProtocol) throws(ENRError) {
        guard text.hasPrefix("enr:") else { throw .malformed }
        guard text.utf8.count <= 4 + (Self.maximumByteCount * 4 + 2) / 3 else { throw .tooLong }
        guard let bytes = Base64.decodeURL(text.dropFirst(4).utf8) else { throw .malformed }
        try self.init(parsing: bytes)
    }

    /// Parses the binary form, and verifies the signature.
    public init(parsing bytes: [UInt8]) throws(ENRError) {
        guard bytes.count <= Self.maximumByteCount else { throw .tooLong }
        guard var reader = RLPReader(listIn: bytes), let signature = reader.string() else { throw .malformed }
        let signed = bytes[reader.position...]
        guard let sequence = reader.string().flatMap(Self.number) else { throw .malformed }
        var values: [String: ArraySlice<UInt8>] = [:]
        while !reader.isAtEnd {
            // The value of an unknown key may be a list.
            guard let key = reader.string().map({ String(decoding: $0, as: UTF8.self) }), values[key] == nil,
                let value = Self.keys.contains(key) ? reader.string() : reader.skip()
            else { throw .malformed }
            if Self.keys.contains(key) { values[key] = value }
        }
        guard let scheme = values["id"], scheme.elementsEqual("v4".utf8) else { throw .unknownScheme }
        guard let key = values["secp256k1"], key.count == PublicKey.compressedByteCount, let publicKey = try? PublicKey(parsing: key) else {
            throw .malformed
        }
        guard publicKey.signed(Keccak256.hash(RLP.list(signed)), compact: signature) else { throw .badSignature }
        self.sequence = sequence
        self.publicKey = publicKey
        ip4 = values["ip"].flatMap { $0.count == 4 ? Array($0) : nil }
        ip6 = values["ip6"].flatMap { $0.count == 16 ? Array($0) : nil }
        tcp = values["tcp"].flatMap { Self.number($0) }.flatMap { UInt16(exactly: $0) }
        tcp6 = values["tcp6"].flatMap { Self.number($0) }.flatMap { UInt16(exactly: $0) }
        multiaddrs = values["multiaddrs"].map { Self.addresses($0) } ?? []
        shards = values["rs"].flatMap { RelayShards(list: $0) } ?? values["rsv"].flatMap { RelayShards(bitVector: $0) }
    }

    private static let keys: Set = ["id", "secp256k1", "ip", "tcp", "ip6", "tcp6", "multiaddrs", "rs", "rsv"]

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64? {
        bytes.count <= 8 ? bytes.reduce(0) { $0 << 8 | UInt64($1) } : nil
    }

    /// The addresses before the first malformed one.
    private static func addresses(_ bytes: ArraySlice<UInt8>) -> [[UInt8]] {
        var rest = bytes
        var addresses: [[UInt8]] = []
        while rest.count > 2, addresses.count < maximumAddressCount {
            let count = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
            rest = rest.dropFirst(2)
            guard count > 0, count <= rest.count else { break }
            addresses.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return addresses
    }
}
