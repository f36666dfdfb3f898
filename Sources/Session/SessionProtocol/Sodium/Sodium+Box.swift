import CSodium
package import WakuCrypto

extension Sodium {
    /// `crypto_box` of NaCl: X25519, XSalsa20 and Poly1305. A box is `tag(16) ‖ ciphertext`.
    enum Box {
        static let nonceByteCount = 24
        static let tagByteCount = 16
    }

    /// The key of boxes between two parties.
    ///
    /// - Parameters:
    ///   - secret: 32 bytes.
    ///   - point: The peer's public key.
    /// - Throws: ``CryptoError/invalidKey`` unless the peer's key is 32 bytes of a point that is not of small order.
    /// - Precondition: The secret has 32 bytes.
    package func boxKey(_ secret: SecretBytes, with point: [UInt8]) throws(CryptoError) -> SymmetricKey {
        precondition(secret.count == 32)
        guard point.count == 32 else { throw .invalidKey }
        return SymmetricKey(
            try SecretBytes(count: SymmetricKey.byteCount) { output throws(CryptoError) in
                let result = secret.withBytes { secret in
                    functions.crypto_box_beforenm(output.assumingMemoryBound(to: UInt8.self).baseAddress, point, secret.baseAddress)
                }
                guard result == 0 else { throw .invalidKey }
            })
    }

    /// - Precondition: The nonce has 24 bytes, and is never used twice with the same key.
    package func boxSeal(_ plain: [UInt8], key: SymmetricKey, nonce: [UInt8]) -> [UInt8] {
        precondition(nonce.count == Box.nonceByteCount)
        let sealed = output(count: plain.count + Box.tagByteCount) { sealed in
            key.secret.withBytes { functions.crypto_box_easy_afternm(sealed, plain, UInt64(plain.count), nonce, $0.baseAddress) }
        }
        guard let sealed else { preconditionFailure("libsodium failed in crypto_box_easy_afternm") }
        return sealed
    }

    /// - Throws: ``CryptoError/truncated``, ``CryptoError/authenticationFailed``
    /// - Precondition: The nonce has 24 bytes.
    package func boxOpen(_ sealed: ArraySlice<UInt8>, key: SymmetricKey, nonce: [UInt8]) throws(CryptoError) -> [UInt8] {
        precondition(nonce.count == Box.nonceByteCount)
        guard sealed.count >= Box.tagByteCount else { throw .truncated }
        let opened = output(count: sealed.count - Box.tagByteCount) { plain in
            sealed.withUnsafeBufferPointer { sealed in
                key.secret.withBytes {
                    functions.crypto_box_open_easy_afternm(plain, sealed.baseAddress, UInt64(sealed.count), nonce, $0.baseAddress)
                }
            }
        }
        guard let opened else { throw .authenticationFailed }
        return opened
    }
}
