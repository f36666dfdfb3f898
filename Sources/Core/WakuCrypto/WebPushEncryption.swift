/// The keys of a receiver of Web Push messages, RFC 8291.
public struct WebPushKeys: Hashable, Sendable {
    /// Length of the authentication secret in bytes.
    public static let secretByteCount = 16
    /// `p256dh`.
    public let publicKey: P256PublicKey
    /// `auth`, 16 bytes: known to the receiver and the application server, not to the push service.
    public let secret: [UInt8]

    /// nil unless the secret has 16 bytes.
    public init?(publicKey: P256PublicKey, secret: [UInt8]) {
        guard secret.count == Self.secretByteCount else { return nil }
        self.publicKey = publicKey
        self.secret = secret
    }
}

/// Message encryption for Web Push, RFC 8291 with the content encoding `aes128gcm` of RFC 8188, in one record.
///
///     salt(16) ‖ record size(4, big-endian) = 4096 ‖ 65 ‖ sender's ephemeral key(65) ‖ AES-128-GCM ‖ tag(16)
///     plaintext of the record: content ‖ 02 ‖ zeros
///
/// IKM = HKDF(salt: auth, ECDH, "WebPush: info" 00 ‖ receiver's key ‖ sender's key). Key and nonce: HKDF(salt, IKM, "Content-Encoding: aes128gcm" 00)
/// and HKDF(salt, IKM, "Content-Encoding: nonce" 00).
public enum WebPushEncryption {
    /// `rs` of RFC 8188 in bytes; a message is one record.
    public static let recordSize = 4096
    /// Length of the salt in bytes.
    public static let saltByteCount = 16
    private static let headerByteCount = saltByteCount + 4 + 1 + P256PublicKey.byteCount
    /// The largest content: the whole body then has 4,096 bytes, which push services should accept, RFC 8030. Mozilla's accepts 3,015 bytes for devices
    /// that it reaches through Firebase or APNs.
    public static let maximumContentByteCount = 4096 - headerByteCount - 1 - AES128GCM.tagByteCount
    /// The sizes to which content is padded, so that a push service learns little from the size of a message.
    public static let contentSizes = [512, 1024, 2048, maximumContentByteCount]

    /// Encrypts with a new ephemeral key and salt, padded to one of ``contentSizes``. nil when the content is longer than the largest of them.
    public static func seal(_ content: [UInt8], to keys: WebPushKeys) -> [UInt8]? {
        guard let size = contentSizes.first(where: { content.count <= $0 }) else { return nil }
        return seal(content, paddedTo: size, to: keys, ephemeral: .generate(), salt: randomBytes(saltByteCount))
    }

    /// nil when the content does not fit, or the receiver's key is not a point.
    static func seal(
        _ content: [UInt8], paddedTo size: Int, to keys: WebPushKeys, ephemeral: P256PrivateKey, salt: [UInt8]
    ) -> [UInt8]? {
        guard content.count <= size, size <= recordSize - 1 - AES128GCM.tagByteCount, salt.count == saltByteCount,
            let shared = try? ephemeral.sharedSecret(with: keys.publicKey)
        else { return nil }
        let secrets = Secrets(shared, keys, sender: ephemeral.publicKey, salt: salt)
        var plain = content
        plain.reserveCapacity(size + 1)
        plain.append(2)
        plain += repeatElement(0, count: size - content.count)
        var body = salt
        body.reserveCapacity(headerByteCount + plain.count + AES128GCM.tagByteCount)
        body += [0, 0, UInt8(recordSize >> 8), UInt8(recordSize & 0xFF), UInt8(P256PublicKey.byteCount)]
        body += ephemeral.publicKey.bytes
        body += AES128GCM.seal(plain, key: secrets.key, nonce: secrets.nonce)
        return body
    }

    /// Decrypts a body of one record, as the receiver.
    ///
    /// - Parameters:
    ///   - body: the body of a push message.
    ///   - key: the receiver's private key.
    ///   - secret: `auth`, 16 bytes.
    /// - Throws: ``CryptoError/truncated``, ``CryptoError/invalidKey``, ``CryptoError/authenticationFailed``, also for a body of several records and for
    ///   padding that is not zeros after the delimiter of the last record.
    public static func open(_ body: [UInt8], key: P256PrivateKey, secret: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard body.count >= headerByteCount + 1 + AES128GCM.tagByteCount else { throw .truncated }
        let salt = Array(body[..<saltByteCount])
        let size = body[saltByteCount..<saltByteCount + 4].reduce(0) { $0 << 8 | Int($1) }
        guard body[saltByteCount + 4] == UInt8(P256PublicKey.byteCount) else { throw .invalidKey }
        let sender = try P256PublicKey(parsing: body[(saltByteCount + 5)..<headerByteCount])
        let sealed = Array(body[headerByteCount...])
        guard sealed.count <= size else { throw .authenticationFailed }
        guard let keys = WebPushKeys(publicKey: key.publicKey, secret: secret) else { throw .invalidKey }
        let secrets = Secrets(try key.sharedSecret(with: sender), keys, sender: sender, salt: salt)
        let plain = try AES128GCM.open(sealed, key: secrets.key, nonce: secrets.nonce)
        guard let end = plain.lastIndex(where: { $0 != 0 }), plain[end] == 2 else { throw .authenticationFailed }
        return Array(plain[..<end])
    }

    private struct Secrets {
        let key: SecretBytes
        let nonce: SecretBytes

        init(_ shared: SecretBytes, _ keys: WebPushKeys, sender: P256PublicKey, salt: [UInt8]) {
            let input = shared.withBytes {
                KeyDerivation.hkdf(
                    $0, salt: keys.secret, purpose: Array("WebPush: info\0".utf8) + keys.publicKey.bytes + sender.bytes, byteCount: 32)
            }
            (key, nonce) = input.withBytes { input in
                (
                    KeyDerivation.hkdf(
                        input, salt: salt, purpose: Array("Content-Encoding: aes128gcm\0".utf8), byteCount: AES128GCM.keyByteCount),
                    KeyDerivation.hkdf(
                        input, salt: salt, purpose: Array("Content-Encoding: nonce\0".utf8), byteCount: AES128GCM.nonceByteCount)
                )
            }
        }
    }
}
