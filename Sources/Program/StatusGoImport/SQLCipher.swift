import COpenSSL
import WakuCrypto

/// Decrypts databases written by SQLCipher with the settings of its version 3, as in status-go: AES-256-CBC, HMAC-SHA1, PBKDF2-HMAC-SHA1.
///
///     file    salt(16) ‖ rest of page 1 ‖ page 2 ‖ …
///     page    ciphertext ‖ IV(16) ‖ HMAC(20) ‖ padding(12)
///
/// The HMAC covers ciphertext ‖ IV ‖ page number (4 bytes, little-endian). The plaintext of page 1 lacks the 16 bytes of SQLite's header
/// string, where the salt is.
struct SQLCipher {
    static let saltByteCount = 16
    private static let keyByteCount = 32
    private static let ivByteCount = 16
    private static let tagByteCount = 20
    /// IV and HMAC, filled up to whole AES blocks.
    private static let reservedByteCount = 48
    /// status-go's page size first.
    private static let pageByteCounts = [8192, 4096, 1024, 2048, 16384, 32768, 65536, 512]

    let pageByteCount: Int
    /// The byte that SQLite locks. Its page is never written: it stays zero, and has no HMAC. Tests set another value, since files that
    /// contain this byte have at least 1 GiB.
    var lockByte = 0x4000_0000
    private let key: SecretBytes
    private let tagKey: SecretBytes

    /// Finds the size of pages by the HMAC of the first.
    ///
    /// - Parameters:
    ///   - password: as configured for the server.
    ///   - iterations: the iterations of the key derivation: 3,200 in status-go.
    /// - Returns: nil if no page size fits: wrong password or number of iterations, or a damaged first page.
    init?(_ file: UnsafeRawBufferPointer, password: SecretBytes, iterations: Int) {
        guard file.count >= Self.saltByteCount else { return nil }
        let salt = Array(file.prefix(Self.saltByteCount))
        let key = password.withBytes { Self.derive($0, salt: salt, iterations: iterations) }
        let tagKey = key.withBytes { Self.derive($0, salt: salt.map { $0 ^ 0x3a }, iterations: 2) }
        for size in Self.pageByteCounts where file.count >= size && file.count.isMultiple(of: size) {
            let page = UnsafeRawBufferPointer(rebasing: file[Self.saltByteCount..<size])
            if Self.isAuthentic(page, number: 1, tagKey) {
                (pageByteCount, self.key, self.tagKey) = (size, key, tagKey)
                return
            }
        }
        return nil
    }

    /// Decrypts all pages in their place.
    ///
    /// - Parameter file: as in the initializer. It becomes a plain SQLite database with 48 unused bytes at the end of each page.
    /// - Returns: the number of the first damaged page, nil if all are whole.
    func decrypt(_ file: UnsafeMutableRawBufferPointer) -> Int? {
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        for index in 0..<file.count / pageByteCount where index != lockByte / pageByteCount {
            let start = index * pageByteCount + (index == 0 ? Self.saltByteCount : 0)
            let page = UnsafeMutableRawBufferPointer(rebasing: file[start..<(index + 1) * pageByteCount])
            guard Self.isAuthentic(UnsafeRawBufferPointer(page), number: UInt32(truncatingIfNeeded: index + 1), tagKey) else {
                return index + 1
            }
            decrypt(page: page, context)
        }
        file.copyBytes(from: DatabaseFile.header)
        return nil
    }

    private func decrypt(page: UnsafeMutableRawBufferPointer, _ context: OpaquePointer?) {
        let count = page.count - Self.reservedByteCount
        let bytes = page.assumingMemoryBound(to: UInt8.self).baseAddress
        var written: Int32 = 0
        key.withBytes { key in
            precondition(EVP_DecryptInit_ex(context, EVP_aes_256_cbc(), nil, key.baseAddress, bytes.map { $0 + count }) == 1)
            precondition(EVP_CIPHER_CTX_set_padding(context, 0) == 1)
            precondition(EVP_DecryptUpdate(context, bytes, &written, bytes, Int32(count)) == 1)
        }
    }

    private static func isAuthentic(_ page: UnsafeRawBufferPointer, number: UInt32, _ tagKey: SecretBytes) -> Bool {
        let covered = page.count - reservedByteCount + ivByteCount
        let message = Array(page.prefix(covered)) + withUnsafeBytes(of: number.littleEndian, Array.init)
        var (tag, count) = ([UInt8](repeating: 0, count: tagByteCount), 0)
        tagKey.withBytes { key in
            precondition(
                EVP_Q_mac(
                    nil, "HMAC", nil, "SHA1", nil, key.baseAddress, key.count, message, message.count, &tag, tag.count, &count) != nil)
        }
        return count == tagByteCount && CRYPTO_memcmp(tag, Array(page[covered..<covered + tagByteCount]), tagByteCount) == 0
    }

    private static func derive(_ secret: UnsafeBufferPointer<UInt8>, salt: [UInt8], iterations: Int) -> SecretBytes {
        SecretBytes(count: keyByteCount) { output in
            secret.withMemoryRebound(to: CChar.self) { secret in
                precondition(
                    PKCS5_PBKDF2_HMAC(
                        secret.baseAddress, Int32(secret.count), salt, Int32(salt.count), Int32(iterations), EVP_sha1(),
                        Int32(keyByteCount),
                        output.assumingMemoryBound(to: UInt8.self).baseAddress) == 1)
            }
        }
    }
}
