import CTLS
import Core
import Foundation

/// A certificate for a server in the operator's own network, and the certificate authority that was made to sign it. The authority's private key is not
/// kept, so that the authority can be trusted without a risk: it signs nothing else.
package struct TrialCertificate: Sendable {
    private static let days = 397

    /// The authority's certificate, in PEM.
    package let authority: String
    package let certificate: String
    /// The private key of ``certificate``, in PEM.
    package let key: String

    /// - Parameter hosts: names and IP addresses of the server.
    /// - Returns: nil for a host that is neither, and for none.
    package init?(hosts: [String]) {
        defer { ERR_clear_error() }
        var names: [String] = []
        for host in hosts {
            guard let name = Self.alternativeName(host) else { return nil }
            names.append(name)
        }
        guard !names.isEmpty, let authorityKey = waku_generate_p256() else { return nil }
        defer { EVP_PKEY_free(authorityKey) }
        guard let key = waku_generate_p256() else { return nil }
        defer { EVP_PKEY_free(key) }
        guard
            let authority = Self.certificate(
                name: "waku-push trial authority", of: authorityKey, issuer: nil, signer: authorityKey,
                [
                    (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign"),
                    (NID_subject_key_identifier, "hash"),
                ])
        else { return nil }
        defer { X509_free(authority) }
        guard
            let certificate = Self.certificate(
                name: "waku-push trial server", of: key, issuer: authority, signer: authorityKey,
                [
                    (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                    (NID_ext_key_usage, "serverAuth"), (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid"),
                    (NID_subject_alt_name, names.joined(separator: ",")),
                ])
        else { return nil }
        defer { X509_free(certificate) }
        guard let authorityText = PEMText.write({ PEM_write_bio_X509($0, authority) }),
            let certificateText = PEMText.write({ PEM_write_bio_X509($0, certificate) }),
            let keyText = PEMText.write({ PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) })
        else { return nil }
        (self.authority, self.certificate, self.key) = (authorityText, certificateText, keyText)
    }

    /// In the syntax of OpenSSL's configuration.
    private static func alternativeName(_ host: String) -> String? {
        if IPAddress(host) != nil { return "IP:" + host }
        return HostPolicy.isName(host) ? "DNS:" + host : nil
    }

    /// - Parameters:
    ///   - issuer: nil for a certificate that signs itself.
    ///   - extensions: in the syntax of OpenSSL's configuration.
    private static func certificate(
        name: String, of key: OpaquePointer, issuer: OpaquePointer?, signer: OpaquePointer, _ extensions: [(kind: Int32, value: String)]
    ) -> OpaquePointer? {
        guard let made = X509_new() else { return nil }
        let subject = X509_get_subject_name(made)
        let serial = UInt64.random(in: 1...UInt64(Int64.max))
        var isMade =
            X509_set_version(made, 2) == 1 && ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), serial) == 1
            && X509_gmtime_adj(X509_getm_notBefore(made), -3600) != nil
            && X509_gmtime_adj(X509_getm_notAfter(made), days * 24 * 3600) != nil
            && X509_set_pubkey(made, key) == 1 && X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_FLAG, name, -1, -1, 0) == 1
            && X509_set_issuer_name(made, X509_get_subject_name(issuer ?? made)) == 1
        for (kind, value) in extensions where isMade {
            guard let added = waku_x509_extension(issuer ?? made, made, kind, value) else {
                isMade = false
                break
            }
            isMade = X509_add_ext(made, added, -1) == 1
            X509_EXTENSION_free(added)
        }
        guard isMade, X509_sign(made, signer, EVP_sha256()) > 0 else {
            X509_free(made)
            return nil
        }
        return made
    }
}
