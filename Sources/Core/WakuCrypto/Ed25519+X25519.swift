import COpenSSL

extension Ed25519PublicKey {
    /// The prime of both curves, 2^255 − 19, little-endian.
    private static let prime: [UInt8] = [0xED] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]
    private static let contexts = ThreadContexts({ BN_CTX_new() }, wipe: { _ in }, free: { BN_CTX_free(OpaquePointer($0)) })

    /// Whether an X25519 key is the Montgomery form of this key: u = (1 + y) / (1 − y), RFC 7748, section 4.1.
    ///
    /// Compares u · (1 − y) with 1 + y, at a hundredth of the cost of a conversion that also finds the order of the point. It does not check whether
    /// the point exists, or its order: later steps must reject keys that are not points or have a small order. libsodium does so when it verifies a
    /// signature or multiplies the key; OpenSSL accepts signatures of keys of small order.
    ///
    /// - Parameter form: an X25519 public key. The result is false unless it is a canonical coordinate of 32 bytes.
    package func hasX25519Form(_ form: [UInt8]) -> Bool {
        guard form.count == Self.byteCount else { return false }
        return Self.contexts.withContext { context in
            BN_CTX_start(context)
            defer { BN_CTX_end(context) }
            let numbers = (0..<5).map { _ in BN_CTX_get(context) }
            precondition(!numbers.contains(nil), "libcrypto has no memory for a number")
            let (prime, u, y, sum, product) = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
            BN_lebin2bn(Self.prime, Int32(Self.byteCount), prime)
            BN_lebin2bn(form, Int32(Self.byteCount), u)
            BN_lebin2bn(bytes, Int32(Self.byteCount), y)
            // Clear the sign of x, which is not part of y.
            BN_clear_bit(y, 255)
            guard BN_cmp(u, prime) < 0, BN_cmp(y, prime) < 0 else { return false }
            require(BN_mod_add(sum, BN_value_one(), y, prime, context))
            require(BN_mod_sub(product, BN_value_one(), y, prime, context))
            require(BN_mod_mul(product, product, u, prime, context))
            return BN_cmp(sum, product) == 0
        }
    }
}
