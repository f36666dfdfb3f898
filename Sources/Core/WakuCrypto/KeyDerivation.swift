import COpenSSL

/// Key derivation functions.
public enum KeyDerivation {
    /// The symmetric key of a topic: PBKDF2-HMAC-SHA256(password = topic string, empty salt, 65,356 rounds), 32 bytes.
    ///
    /// Takes about 7 ms of CPU time, so callers should store the result.
    public static func topicKey(_ topicString: String) -> SymmetricKey {
        // As HMAC treats its keys.
        var password = Array(topicString.utf8)
        if password.count > hmacBlockByteCount { password = SHA256.hash(password) }
        password += repeatElement(0, count: hmacBlockByteCount - password.count)
        return SymmetricKey(
            SecretBytes(count: SymmetricKey.byteCount) { output in
                waku_pbkdf2_sha256(password, 65_356, output.assumingMemoryBound(to: UInt8.self).baseAddress)
            })
    }

    private static let hmacBlockByteCount = 64

    /// HKDF-SHA256, RFC 5869. `purpose` is the info: different purposes give independent keys.
    static func hkdf(_ secret: UnsafeBufferPointer<UInt8>, salt: [UInt8] = [], purpose: [UInt8], byteCount: Int) -> SecretBytes {
        salt.withUnsafeBufferPointer { hkdf(secret, salt: $0, purpose: purpose, byteCount: byteCount) }
    }

    private static func hkdf(
        _ secret: UnsafeBufferPointer<UInt8>, salt: UnsafeBufferPointer<UInt8>, purpose: [UInt8], byteCount: Int
    ) -> SecretBytes {
        let extracted = SecretBytes(count: HMACSHA256.byteCount) { HMACSHA256.tag(key: salt, of: secret, into: $0) }
        return SecretBytes(count: byteCount) { output in
            var block = SecretBytes([])
            for (index, start) in stride(from: 0, to: byteCount, by: HMACSHA256.byteCount).enumerated() {
                let input = block.withBytes { SecretBytes(Array($0) + purpose + [UInt8(index + 1)]) }
                block = SecretBytes(count: HMACSHA256.byteCount) { block in
                    extracted.withBytes { key in input.withBytes { HMACSHA256.tag(key: key, of: $0, into: block) } }
                }
                block.withBytes { UnsafeMutableRawBufferPointer(rebasing: output[start...]).copyBytes(from: $0.prefix(byteCount - start)) }
            }
        }
    }

    /// HKDF of the Noise framework with two outputs of 32 bytes: RFC 5869 with the chaining key as the salt and nothing as the info.
    public static func noiseKeys(chainingKey: SecretBytes, input: SecretBytes?) -> (SecretBytes, SecretBytes) {
        let keys = chainingKey.withBytes { salt in
            (input ?? SecretBytes([])).withBytes { hkdf($0, salt: salt, purpose: [], byteCount: 2 * HMACSHA256.byteCount) }
        }
        return keys.withBytes { (SecretBytes($0.prefix(HMACSHA256.byteCount)), SecretBytes($0.suffix(HMACSHA256.byteCount))) }
    }
}

extension SymmetricKey {
    /// A key derived from this one and a salt, by HKDF-SHA256.
    public func derivedKey(salt: [UInt8], purpose: String) -> SymmetricKey {
        secret.withBytes { secret in
            SymmetricKey(KeyDerivation.hkdf(secret, salt: salt, purpose: Array(purpose.utf8), byteCount: SymmetricKey.byteCount))
        }
    }
}
