import CSodium
package import WakuCrypto

extension Sodium {
    /// XChaCha20-Poly1305 (IETF) without associated data: `nonce(24) ‖ ciphertext ‖ tag(16)`.
    package enum XChaCha {
        package static let nonceByteCount = 24
        package static let tagByteCount = 16
        /// The number of bytes that sealing adds.
        package static let overhead = nonceByteCount + tagByteCount
    }

    /// The public half of an X25519 key.
    ///
    /// - Precondition: 32 bytes.
    package func x25519PublicKey(of secret: SecretBytes) -> [UInt8] {
        precondition(secret.count == 32)
        return [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
            secret.withBytes { secret in
                let result = functions.crypto_scalarmult_base(buffer.baseAddress, secret.baseAddress)
                precondition(result == 0, "libsodium failed in crypto_scalarmult_base")
            }
            initialized = 32
        }
    }

    /// The X25519 shared secret, 32 bytes, without a key derivation.
    ///
    /// - Parameters:
    ///   - secret: 32 bytes.
    ///   - point: The peer's public key.
    /// - Throws: ``CryptoError/invalidKey`` unless the peer's key is 32 bytes of a point that is not of small order.
    /// - Precondition: The secret has 32 bytes.
    package func sharedSecret(_ secret: SecretBytes, with point: [UInt8]) throws(CryptoError) -> SecretBytes {
        precondition(secret.count == 32)
        guard point.count == 32 else { throw .invalidKey }
        return try SecretBytes(count: 32) { output throws(CryptoError) in
            let result = secret.withBytes { secret in
                functions.crypto_scalarmult(output.assumingMemoryBound(to: UInt8.self).baseAddress, secret.baseAddress, point)
            }
            guard result == 0 else { throw .invalidKey }
        }
    }

    /// BLAKE2b with 32 bytes of output.
    ///
    /// - Parameters:
    ///   - bytes: Input of any length.
    ///   - key: At most 64 bytes; empty for none.
    /// - Precondition: The key has at most 64 bytes.
    package func blake2b256(_ bytes: [UInt8], key: [UInt8] = []) -> [UInt8] {
        precondition(key.count <= 64)
        return [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
            let result = functions.crypto_generichash(buffer.baseAddress, 32, bytes, UInt64(bytes.count), key, key.count)
            precondition(result == 0, "libsodium failed in crypto_generichash")
            initialized = 32
        }
    }

    /// BLAKE2b-256 of a secret, as a symmetric key.
    package func blake2b256Key(of secret: SecretBytes) -> SymmetricKey {
        SymmetricKey(
            SecretBytes(count: 32) { output in
                let result = secret.withBytes { secret in
                    functions.crypto_generichash(
                        output.assumingMemoryBound(to: UInt8.self).baseAddress, 32, secret.baseAddress, UInt64(secret.count), nil, 0)
                }
                precondition(result == 0, "libsodium failed in crypto_generichash")
            })
    }

    /// Encrypts with a fresh random nonce.
    package func xChaChaSeal(_ plain: [UInt8], key: SymmetricKey) -> [UInt8] {
        xChaChaSeal(plain, key: key, nonce: randomBytes(XChaCha.nonceByteCount))
    }

    /// - Precondition: The nonce has 24 bytes, and is never used twice with the same key.
    package func xChaChaSeal(_ plain: [UInt8], key: SymmetricKey, nonce: [UInt8]) -> [UInt8] {
        precondition(nonce.count == XChaCha.nonceByteCount)
        return [UInt8](unsafeUninitializedCapacity: plain.count + XChaCha.overhead) { buffer, initialized in
            initialized = buffer.count
            guard let start = buffer.baseAddress else { return }
            start.initialize(from: nonce, count: nonce.count)
            let result = key.secret.withBytes { key in
                functions.crypto_aead_xchacha20poly1305_ietf_encrypt(
                    start + nonce.count, nil, plain, UInt64(plain.count), nil, 0, nil, nonce, key.baseAddress)
            }
            precondition(result == 0, "libsodium failed in crypto_aead_xchacha20poly1305_ietf_encrypt")
        }
    }

    /// - Throws: ``CryptoError/truncated``, ``CryptoError/authenticationFailed``
    package func xChaChaOpen(_ sealed: ArraySlice<UInt8>, key: SymmetricKey) throws(CryptoError) -> [UInt8] {
        let count = sealed.count - XChaCha.overhead
        guard count >= 0 else { throw .truncated }
        let opened = output(count: count) { plain in
            sealed.withUnsafeBufferPointer { sealed in
                guard let nonce = sealed.baseAddress else { return -1 }
                return key.secret.withBytes { key in
                    functions.crypto_aead_xchacha20poly1305_ietf_decrypt(
                        plain, nil, nil, nonce + XChaCha.nonceByteCount, UInt64(sealed.count - XChaCha.nonceByteCount), nil, 0, nonce,
                        key.baseAddress)
                }
            }
        }
        guard let opened else { throw .authenticationFailed }
        return opened
    }
}
