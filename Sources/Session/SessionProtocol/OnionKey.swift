package import WakuCrypto

/// This node's X25519 key for onion requests. The secret half is wiped when freed, and never printed.
package struct OnionKey: Sendable, Redacted {
    package static let byteCount = 32

    private let sodium: Sodium
    private let secret: SecretBytes
    /// 32 bytes.
    package let publicKey: [UInt8]

    /// nil unless the secret has 32 bytes.
    package init?(_ secret: SecretBytes, sodium: Sodium) {
        guard secret.count == Self.byteCount else { return nil }
        self.sodium = sodium
        self.secret = secret
        publicKey = sodium.x25519PublicKey(of: secret)
    }

    /// Decrypts a request.
    ///
    /// - Throws: ``OnionError``, in which case there is no sealed answer.
    package func open(_ body: [UInt8]) throws(OnionError) -> OpenedOnion {
        let request = try OnionRequest(parsing: body)
        guard let shared = try? sodium.sharedSecret(secret, with: request.ephemeralKey) else { throw .undecryptable }
        let box = OnionBox(
            request.encryption, shared: shared, clientKey: request.ephemeralKey, serverKey: publicKey, sodium: sodium)
        guard let plain = box.open(request.ciphertext) else { throw .undecryptable }
        return OpenedOnion(plain: plain, box: box)
    }
}

/// A decrypted request, and the key that seals its answer.
package struct OpenedOnion: Sendable {
    package let plain: [UInt8]
    package let box: OnionBox

    /// The sealed answer, sent as raw bytes with status 200.
    package func seal(_ response: OnionInnerResponse) -> [UInt8] { box.seal(response.encoded()) }
}

/// Encrypts between a client and this node under the key of one request.
///
///     xChaCha20   key = BLAKE2b-256(X25519(b, A) ‖ A ‖ B)            A the client's ephemeral key, B the server's
///     aesGCM      key = HMAC-SHA256(key "LOKI", X25519(b, A))
package struct OnionBox: Sendable {
    private static let label = Array("LOKI".utf8)

    let encryption: OnionEncryption
    private let key: SymmetricKey
    private let sodium: Sodium

    /// - Parameters:
    ///   - encryption: Selects the cipher and the key derivation.
    ///   - shared: The X25519 shared secret, 32 bytes.
    ///   - clientKey: The client's ephemeral public key, 32 bytes.
    ///   - serverKey: The server's public key, 32 bytes.
    ///   - sodium: libsodium, for BLAKE2b and XChaCha20.
    package init(_ encryption: OnionEncryption, shared: SecretBytes, clientKey: [UInt8], serverKey: [UInt8], sodium: Sodium) {
        self.encryption = encryption
        self.sodium = sodium
        switch encryption {
        case .aesGCM:
            key = HMACSHA256.derivedKey(label: Self.label, of: shared)
        case .xChaCha20:
            let input = SecretBytes(count: shared.count + clientKey.count + serverKey.count) { input in
                shared.withBytes { input.copyBytes(from: $0) }
                UnsafeMutableRawBufferPointer(rebasing: input[shared.count...]).copyBytes(from: clientKey + serverKey)
            }
            key = sodium.blake2b256Key(of: input)
        }
    }

    /// Encrypts with a fresh random nonce.
    package func seal(_ plain: [UInt8]) -> [UInt8] {
        switch encryption {
        case .aesGCM: AESGCM.seal(plain, key: key, layout: .nonceFirst)
        case .xChaCha20: sodium.xChaChaSeal(plain, key: key)
        }
    }

    /// Decrypts; nil unless the bytes were sealed with this key.
    package func open(_ sealed: ArraySlice<UInt8>) -> [UInt8]? {
        switch encryption {
        case .aesGCM: try? AESGCM.open(Array(sealed), key: key, layout: .nonceFirst)
        case .xChaCha20: try? sodium.xChaChaOpen(sealed, key: key)
        }
    }
}
