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
        let context = EVP_KDF_CTX_new(Algorithm.hkdf.pointer)
        defer { EVP_KDF_CTX_free(context) }
        var digest = Array("SHA256".utf8CString)
        var salt = salt
        var purpose = purpose
        return SecretBytes(count: byteCount) { output in
            digest.withUnsafeMutableBufferPointer { digest in
                salt.withUnsafeMutableBytes { salt in
                    purpose.withUnsafeMutableBytes { purpose in
                        var parameters = [
                            OSSL_PARAM_construct_utf8_string(ParameterName.digest, digest.baseAddress, 0),
                            OSSL_PARAM_construct_octet_string(
                                ParameterName.key, UnsafeMutableRawPointer(mutating: secret.baseAddress), secret.count),
                            OSSL_PARAM_construct_octet_string(ParameterName.salt, salt.baseAddress, salt.count),
                            OSSL_PARAM_construct_octet_string(ParameterName.info, purpose.baseAddress, purpose.count),
                            OSSL_PARAM_construct_end(),
                        ]
                        require(EVP_KDF_derive(context, output.assumingMemoryBound(to: UInt8.self).baseAddress, byteCount, &parameters))
                    }
                }
            }
        }
    }

    /// HKDF of the Noise framework with two outputs of 32 bytes: RFC 5869 with the chaining key as the salt and nothing as the info.
    public static func noiseKeys(chainingKey: SecretBytes, input: SecretBytes?) -> (SecretBytes, SecretBytes) {
        let extracted = SecretBytes(count: HMACSHA256.byteCount) { output in
            chainingKey.withBytes { salt in
                guard let input else { return HMACSHA256.tag(key: salt, of: UnsafeBufferPointer(start: nil, count: 0), into: output) }
                input.withBytes { HMACSHA256.tag(key: salt, of: $0, into: output) }
            }
        }
        return extracted.withBytes { key in
            let first = SecretBytes(count: HMACSHA256.byteCount) { output in
                [1].withUnsafeBufferPointer { HMACSHA256.tag(key: key, of: $0, into: output) }
            }
            let continued = first.withBytes { SecretBytes(Array($0) + [2]) }
            let second = SecretBytes(count: HMACSHA256.byteCount) { output in
                continued.withBytes { HMACSHA256.tag(key: key, of: $0, into: output) }
            }
            return (first, second)
        }
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
