import WakuCrypto

/// The XX handshake of the Noise framework, revision 34, `Noise_XX_25519_ChaChaPoly_SHA256`:
///
///     → e
///     ← e, ee, s, es
///     → s, se
///
/// Messages are read and written in turn, each with a payload; the payload of the first one is not encrypted.
struct NoiseHandshake {
    enum Role: Sendable {
        case initiator
        case responder
    }

    private static let keyByteCount = X25519PrivateKey.byteCount

    let role: Role
    private let staticKey: X25519PrivateKey
    private let ephemeralKey: X25519PrivateKey
    private var remoteEphemeral: [UInt8] = []
    /// The peer's static key: known to the initiator after the second message, to the responder after the third.
    private(set) var remoteStatic: [UInt8]?
    private var symmetric: NoiseSymmetricState
    /// Messages sent and received so far.
    private var messageCount = 0

    /// - Parameter ephemeralKey: Must be new for each handshake.
    init(role: Role, staticKey: X25519PrivateKey, ephemeralKey: X25519PrivateKey = .generate(), prologue: [UInt8] = []) {
        self.role = role
        self.staticKey = staticKey
        self.ephemeralKey = ephemeralKey
        symmetric = NoiseSymmetricState(protocolName: "Noise_XX_25519_ChaChaPoly_SHA256")
        symmetric.mixHash(prologue)
    }

    var isComplete: Bool { messageCount == 3 }
    /// The same on both sides once the handshake is complete.
    var hash: [UInt8] { symmetric.hash }

    /// - Precondition: It is this side's turn.
    mutating func write(payload: [UInt8]) throws(NoiseError) -> [UInt8] {
        precondition(messageCount < 3 && messageCount.isMultiple(of: 2) == (role == .initiator))
        var message: [UInt8] = []
        if messageCount < 2 {
            message += ephemeralKey.publicKey
            symmetric.mixHash(ephemeralKey.publicKey)
        }
        switch messageCount {
        case 0: break
        case 1:
            symmetric.mixKey(try product(ephemeralKey, remoteEphemeral))
            message += symmetric.encryptAndHash(staticKey.publicKey)
            symmetric.mixKey(try product(staticKey, remoteEphemeral))
        default:
            message += symmetric.encryptAndHash(staticKey.publicKey)
            symmetric.mixKey(try product(staticKey, remoteEphemeral))
        }
        message += symmetric.encryptAndHash(payload)
        messageCount += 1
        return message
    }

    /// - Precondition: It is the peer's turn.
    /// - Returns: The payload.
    mutating func read(_ message: [UInt8]) throws(NoiseError) -> [UInt8] {
        precondition(messageCount < 3 && messageCount.isMultiple(of: 2) == (role == .responder))
        var rest = message[...]
        if messageCount < 2 {
            remoteEphemeral = try Self.take(Self.keyByteCount, &rest)
            symmetric.mixHash(remoteEphemeral)
        }
        if messageCount > 0 {
            if messageCount == 1 { symmetric.mixKey(try product(ephemeralKey, remoteEphemeral)) }
            let key = try symmetric.decryptAndHash(Self.take(Self.keyByteCount + ChaCha20Poly1305.tagByteCount, &rest))
            remoteStatic = key
            symmetric.mixKey(try product(ephemeralKey, key))
        }
        let payload = try symmetric.decryptAndHash(Array(rest))
        messageCount += 1
        return payload
    }

    /// The transport keys.
    ///
    /// - Precondition: The handshake is complete.
    func split() -> (send: SecretBytes, receive: SecretBytes) {
        precondition(isComplete)
        let (initiators, responders) = symmetric.split()
        return role == .initiator ? (initiators, responders) : (responders, initiators)
    }

    private func product(_ key: X25519PrivateKey, _ point: [UInt8]) throws(NoiseError) -> SecretBytes {
        do { return try key.sharedSecret(with: point) } catch { throw .invalidKey }
    }

    private static func take(_ count: Int, _ rest: inout ArraySlice<UInt8>) throws(NoiseError) -> [UInt8] {
        guard rest.count >= count else { throw .truncated }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}

/// Why securing a connection failed.
public enum NoiseError: Error, Hashable, Sendable {
    /// A message is shorter than its fixed parts.
    case truncated
    /// A handshake message is too long.
    case tooLarge
    /// A public key is a point of small order.
    case invalidKey
    /// A ciphertext was altered, reordered, or encrypted with another key.
    case authenticationFailed
    /// The payload has no valid identity with a valid signature.
    case invalidIdentity
    /// The node at this address has another peer id than expected.
    case unexpectedPeer(PeerID)
}
