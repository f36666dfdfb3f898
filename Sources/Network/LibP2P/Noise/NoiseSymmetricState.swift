import WakuCrypto

/// The symmetric state of a Noise handshake: chaining key, transcript hash and current cipher key.
struct NoiseSymmetricState {
    private(set) var hash: [UInt8]
    private var chainingKey: SecretBytes
    /// nil until the first key is mixed in: payloads are not encrypted before.
    private var key: SecretBytes?
    /// The nonce of the next message under this key.
    private var counter: UInt64 = 0

    /// - Precondition: The protocol name has at most 32 bytes; longer ones would have to be hashed.
    init(protocolName: String) {
        let name = Array(protocolName.utf8)
        precondition(name.count <= SHA256.byteCount)
        hash = name + [UInt8](repeating: 0, count: SHA256.byteCount - name.count)
        chainingKey = SecretBytes(hash)
    }

    mutating func mixHash(_ bytes: [UInt8]) {
        hash = SHA256.hash(hash, bytes)
    }

    mutating func mixKey(_ input: SecretBytes) {
        let (next, key) = KeyDerivation.noiseKeys(chainingKey: chainingKey, input: input)
        chainingKey = next
        self.key = key
        counter = 0
    }

    mutating func encryptAndHash(_ plain: [UInt8]) -> [UInt8] {
        var message = plain
        if let key {
            message = ChaCha20Poly1305(key: key, direction: .seal).seal(plain, counter: counter, associatedData: hash)
            counter += 1
        }
        mixHash(message)
        return message
    }

    mutating func decryptAndHash(_ message: [UInt8]) throws(NoiseError) -> [UInt8] {
        var plain = message
        if let key {
            do {
                plain = try ChaCha20Poly1305(key: key, direction: .open).open(message, counter: counter, associatedData: hash)
            } catch {
                throw error == .truncated ? .truncated : .authenticationFailed
            }
            counter += 1
        }
        mixHash(message)
        return plain
    }

    /// The initiator's and the responder's sending key.
    func split() -> (SecretBytes, SecretBytes) {
        KeyDerivation.noiseKeys(chainingKey: chainingKey, input: nil)
    }
}
