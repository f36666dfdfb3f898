import CSodium
package import WakuCrypto

extension Sodium {
    /// Whether an Ed25519 signature is valid by libsodium's rules: keys of small order and non-canonical encodings are refused.
    ///
    /// - Parameter signature: 64 bytes; any other length is invalid.
    package func isValid(_ signature: [UInt8], of message: [UInt8], by key: Ed25519PublicKey) -> Bool {
        guard signature.count == Ed25519PublicKey.signatureByteCount else { return false }
        return functions.crypto_sign_verify_detached(signature, message, UInt64(message.count), key.bytes) == 0
    }

    /// The X25519 form of an Ed25519 key, 32 bytes; nil if the key is not a point of the prime-order group.
    package func x25519Key(of key: Ed25519PublicKey) -> [UInt8]? {
        output(count: 32) { functions.crypto_sign_ed25519_pk_to_curve25519($0, key.bytes) }
    }

    /// left + right as computed by `crypto_core_ed25519_scalar_add` of libsodium 1.0.18: the sum of 32 bytes without the final carry,
    /// reduced modulo the group's order.
    ///
    /// - Precondition: 32 bytes each, little-endian.
    package func scalarSum(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        precondition(left.count == 32 && right.count == 32)
        return [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
            functions.crypto_core_ed25519_scalar_add(buffer.baseAddress, left, right)
            initialized = 32
        }
    }

    /// scalar · point without clamping; nil if the point is not in the prime-order group, or the product is the identity.
    ///
    /// - Parameter scalar: 32 bytes, little-endian. The top bit is ignored.
    /// - Precondition: The scalar has 32 bytes.
    package func product(_ scalar: [UInt8], _ point: Ed25519PublicKey) -> Ed25519PublicKey? {
        precondition(scalar.count == 32)
        return output(count: 32) { functions.crypto_scalarmult_ed25519_noclamp($0, scalar, point.bytes) }
            .flatMap { try? Ed25519PublicKey(parsing: $0) }
    }

    /// The `count` bytes written by a libsodium function; nil if it fails.
    func output(count: Int, _ body: (UnsafeMutablePointer<UInt8>?) -> Int32) -> [UInt8]? {
        var isComplete = false
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            isComplete = body(buffer.baseAddress) == 0
            initialized = isComplete ? count : 0
        }
        return isComplete ? bytes : nil
    }
}
