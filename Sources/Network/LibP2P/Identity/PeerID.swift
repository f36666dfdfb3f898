import Core

/// The id of a node: the multihash of its public key in libp2p's encoding, libp2p/specs, peer-ids.
///
///     code(1) ‖ length(1) ‖ digest
///
/// Code 0 is the encoded key itself, for keys of up to 42 bytes (Ed25519 and secp256k1); 0x12 is its SHA-256 (RSA and ECDSA, which only ids of other
/// nodes have).
public struct PeerID: Hashable, Comparable, Sendable, CustomStringConvertible {
    static let inlineByteLimit = 42
    private static let identityCode: UInt8 = 0
    private static let sha256Code: UInt8 = 0x12
    /// Version 1, content type `libp2p-key`.
    private static let cidPrefix: [UInt8] = [1, 0x72]
    /// Longer than any text form of a peer id.
    private static let textLimit = 100

    /// The multihash.
    public let bytes: [UInt8]

    /// The id of the node with this key.
    public init(_ key: NodePublicKey) {
        // All supported keys have fewer than ``inlineByteLimit`` bytes.
        let encoded = key.encoded()
        bytes = [Self.identityCode, UInt8(encoded.count)] + encoded
    }

    /// Parses the binary form, a multihash.
    ///
    /// - Throws: ``IdentityError/malformedPeerID``
    public init(parsing bytes: some Collection<UInt8>) throws(IdentityError) {
        let bytes = Array(bytes.prefix(Self.inlineByteLimit + 3))
        guard bytes.count >= 2, Int(bytes[1]) == bytes.count - 2 else { throw .malformedPeerID }
        switch bytes[0] {
        case Self.identityCode:
            guard (try? NodePublicKey(parsing: bytes.dropFirst(2))) != nil else { throw .malformedPeerID }
        case Self.sha256Code where bytes[1] == 32: break
        default: throw .malformedPeerID
        }
        self.bytes = bytes
    }

    /// Parses base58btc (`16Uiu2HA…`, `12D3Koo…`, `Qm…`) or a CID in base32 or base58btc (`bafz…`, `z…`).
    ///
    /// - Throws: ``IdentityError/malformedPeerID``
    public init(_ text: some StringProtocol) throws(IdentityError) {
        guard text.utf8.count <= Self.textLimit else { throw .malformedPeerID }
        if text.hasPrefix("1") || text.hasPrefix("Qm") {
            guard let bytes = Base58.decode(text) else { throw .malformedPeerID }
            try self.init(parsing: bytes)
            return
        }
        let cid =
            switch text.first {
            case "b": Base32.decode(text.dropFirst())
            case "z": Base58.decode(text.dropFirst())
            default: [UInt8]?.none
            }
        guard let cid, cid.starts(with: Self.cidPrefix) else { throw .malformedPeerID }
        try self.init(parsing: cid.dropFirst(Self.cidPrefix.count))
    }

    /// The public key, if the id contains it: for Ed25519 and secp256k1.
    public var publicKey: NodePublicKey? {
        bytes[0] == Self.identityCode ? try? NodePublicKey(parsing: bytes.dropFirst(2)) : nil
    }

    /// The usual text form: base58btc.
    public var description: String { Base58.encode(bytes) }

    /// The newer text form: a CID of version 1 in base32.
    public var cid: String { "b" + Base32.encode(Self.cidPrefix + bytes) }

    /// Compares the bytes lexicographically.
    public static func < (left: PeerID, right: PeerID) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }
}
