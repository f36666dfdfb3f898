import CTLS

/// A server's certificate and its private key. TLS 1.2 and 1.3.
package final class TLSIdentity: Sendable {
    /// Configured by `init` only, and libssl locks what connections change in it, so connections on several threads may share it.
    private nonisolated(unsafe) let context: OpaquePointer
    /// The whole days until the certificate expires; negative afterwards.
    package let daysLeft: Int

    /// - Parameters:
    ///   - certificate: PEM: the server's certificate, then those of the authorities between it and the one that clients trust.
    ///   - key: PEM without a passphrase; it must belong to the first certificate.
    /// - Returns: nil when libssl does not accept them.
    package init?(certificate: [UInt8], key: [UInt8]) {
        defer { ERR_clear_error() }
        let chain = PEMText.certificates(certificate)
        defer { for certificate in chain { X509_free(certificate) } }
        guard let parsed = chain.first else { return nil }
        guard let secret = PEMText.read(key, { PEM_read_bio_PrivateKey($0, nil, PEMText.noPassphrase, nil) }) else { return nil }
        defer { EVP_PKEY_free(secret) }
        var (days, seconds) = (Int32(0), Int32(0))
        guard ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(parsed)) == 1, let context = SSL_CTX_new(TLS_server_method()) else {
            return nil
        }
        guard waku_tls_harden(context) == 1, SSL_CTX_use_certificate(context, parsed) == 1, SSL_CTX_use_PrivateKey(context, secret) == 1,
            SSL_CTX_check_private_key(context) == 1, chain.dropFirst().allSatisfy({ waku_tls_add_chain_certificate(context, $0) == 1 })
        else {
            SSL_CTX_free(context)
            return nil
        }
        self.context = context
        daysLeft = seconds < 0 && days == 0 ? -1 : Int(days)
    }

    deinit {
        SSL_CTX_free(context)
    }

    /// Whether the certificate is for this host name or IP address.
    package func names(_ host: String) -> Bool {
        let certificate = SSL_CTX_get0_certificate(context)
        defer { ERR_clear_error() }
        return X509_check_ip_asc(certificate, host, 0) == 1 || X509_check_host(certificate, host, host.utf8.count, 0, nil) == 1
    }

    /// The state of a new connection; nil when memory is short.
    func makeConnection() -> TLSConnection? { SSL_new(context).flatMap { TLSConnection(taking: $0) } }
}

enum PEMText {
    /// Without this callback, OpenSSL would ask on the terminal for the passphrase of an encrypted key.
    static let noPassphrase: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
        _, _, _, _ in
        -1
    }

    static func read(_ text: [UInt8], _ parse: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
        // The BIO refers to the bytes.
        text.withUnsafeBytes { bytes in
            guard let input = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
            defer { BIO_free(input) }
            return parse(input)
        }
    }

    /// The certificates in their order, to be freed; none if one of them is damaged.
    static func certificates(_ text: [UInt8]) -> [OpaquePointer] {
        var found: [OpaquePointer] = []
        _ = read(text) { input in
            ERR_clear_error()
            while let certificate = PEM_read_bio_X509(input, nil, nil, nil) { found.append(certificate) }
            return nil
        }
        guard waku_pem_has_ended() == 1 else {
            for certificate in found { X509_free(certificate) }
            return []
        }
        return found
    }

    /// - Parameter print: writes to the BIO, returns 1.
    static func write(_ print: (OpaquePointer) -> Int32) -> String? {
        guard let output = BIO_new(BIO_s_mem()) else { return nil }
        defer { BIO_free(output) }
        guard print(output) == 1 else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(waku_bio_pending(output)))
        guard BIO_read(output, &bytes, Int32(bytes.count)) == bytes.count else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}
