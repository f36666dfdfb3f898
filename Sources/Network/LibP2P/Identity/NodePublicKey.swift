import Core
public import WakuCrypto

/// The public key of a node, libp2p/specs, peer-ids.
///
/// Its encoding is a protobuf `{1 type, 2 data}`. Type 1 is Ed25519 (32 bytes), 2 secp256k1 (33 bytes, compressed). The types 0, RSA, and 3, ECDSA,
/// are not supported: IPFS nodes have such keys, Waku nodes have not.
public enum NodePublicKey: Hashable, Sendable {
    /// The usual kind on Waku.
    case secp256k1(PublicKey)
    /// The usual kind on other libp2p networks.
    case ed25519(Ed25519PublicKey)

    /// Decodes libp2p's protobuf.
    ///
    /// - Throws: ``IdentityError/malformedKey``, ``IdentityError/unsupportedKey``
    public init(parsing bytes: some Collection<UInt8>) throws(IdentityError) {
        let (type, data) = try KeyMessage.parse(Array(bytes))
        do {
            switch type {
            case .ed25519: self = .ed25519(try Ed25519PublicKey(parsing: data))
            case .secp256k1: self = .secp256k1(try PublicKey(parsing: data))
            }
        } catch {
            throw .malformedKey
        }
    }

    /// Encodes the key as libp2p's protobuf, the input of the peer id.
    public func encoded() -> [UInt8] {
        switch self {
        case .secp256k1(let key): KeyMessage.encoded(.secp256k1, key.compressed)
        case .ed25519(let key): KeyMessage.encoded(.ed25519, key.bytes)
        }
    }

    /// Verifies the signature of a message, which is hashed as the algorithm requires.
    public func isValid(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        switch self {
        case .secp256k1(let key): ECDSA.isValid(signature, of: SHA256.hash(message), by: key)
        case .ed25519(let key): key.isValid(signature, of: message)
        }
    }
}

/// libp2p's encoding of keys: a protobuf `{1 type, 2 data}`.
enum KeyMessage {
    enum KeyType: UInt64 {
        case ed25519 = 1
        case secp256k1 = 2
    }

    static func encoded(_ type: KeyType, _ data: some Collection<UInt8>) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, type.rawValue)
        writer.field(2, data)
        return writer.bytes
    }

    static func parse(_ bytes: [UInt8]) throws(IdentityError) -> (KeyType, ArraySlice<UInt8>) {
        var reader = ProtobufReader(bytes, refusing: [.groups, .longFieldNumbers])
        var type: UInt64?
        var data: ArraySlice<UInt8>?
        do {
            while let field = try reader.next() {
                switch (field.number, field.value) {
                case (1, .varint(let value)): type = value
                case (2, .content(let content)): data = bytes[content]
                default: throw ProtobufError.malformed
                }
            }
        } catch {
            throw .malformedKey
        }
        guard let type, let data else { throw .malformedKey }
        guard let type = KeyType(rawValue: type) else { throw .unsupportedKey }
        return (type, data)
    }
}

/// Why a key or peer id is invalid.
public enum IdentityError: Error, Hashable, Sendable {
    /// Not the protobuf of a key, or invalid data for its type.
    case malformedKey
    /// Another type of key than Ed25519 and secp256k1.
    case unsupportedKey
    /// Not the multihash of a key, in binary form, in base58btc or in a CID.
    case malformedPeerID
}
