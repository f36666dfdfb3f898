import Core
import WakuCrypto

/// A static Noise key, and the proof that it belongs to a node: libp2p/specs, noise.
///
/// The payload is a protobuf `{1 public key, 2 signature over "noise-libp2p-static-key:" ‖ static key}`.
struct NoiseIdentity: Sendable {
    private static let prefix = Array("noise-libp2p-static-key:".utf8)

    let staticKey: X25519PrivateKey
    let peerID: PeerID
    let payload: [UInt8]

    /// Generates a static key, and signs it once for all connections.
    init(_ key: NodeKey) {
        staticKey = .generate()
        peerID = key.peerID
        var writer = ProtobufWriter()
        writer.field(1, key.publicKey.encoded())
        writer.field(2, key.signature(of: Self.prefix + staticKey.publicKey))
        payload = writer.bytes
    }

    /// The peer that a payload proves to own a static key.
    ///
    /// - Throws: ``NoiseError/invalidIdentity``
    static func peer(provenBy payload: [UInt8], staticKey: [UInt8]) throws(NoiseError) -> PeerID {
        var encodedKey: ArraySlice<UInt8>?
        var signature: ArraySlice<UInt8>?
        var reader = ProtobufReader(payload, refusing: [.groups, .longFieldNumbers])
        do {
            while let field = try reader.next() {
                switch (field.number, field.value) {
                case (1, .content(let content)): encodedKey = payload[content]
                case (2, .content(let content)): signature = payload[content]
                // Extensions, for other transports and early muxer negotiation, are ignored.
                default: break
                }
            }
        } catch {
            throw .invalidIdentity
        }
        guard let encodedKey, let signature, let key = try? NodePublicKey(parsing: encodedKey),
            key.isValid(Array(signature), of: prefix + staticKey)
        else { throw .invalidIdentity }
        return PeerID(key)
    }
}
