import Foundation
import TestSupport
import Testing

@testable import HTTPService

@Suite("Certificates for trials")
struct TrialCertificateTests {
    @Test("OpenSSL verifies the certificate for its names, and for no others")
    func verified() async throws {
        let folder = try TemporaryFolder()
        let made = try #require(TrialCertificate(hosts: ["127.0.0.1", "::1", "push.example"]))
        let (authority, certificate) = (folder.path + "/authority.pem", folder.path + "/certificate.pem")
        try made.authority.write(toFile: authority, atomically: true, encoding: .utf8)
        try made.certificate.write(toFile: certificate, atomically: true, encoding: .utf8)
        func verify(_ arguments: String...) async throws -> Bool {
            try await ExternalTool.run(
                "openssl", ["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", authority] + arguments + [certificate]
            )
            .status == 0
        }
        #expect(try await verify("-verify_ip", "127.0.0.1"))
        #expect(try await verify("-verify_ip", "::1"))
        #expect(try await verify("-verify_hostname", "push.example"))
        #expect(try await !verify("-verify_ip", "127.0.0.2"))
        #expect(try await !verify("-verify_hostname", "other.example"))
    }

    @Test("The key belongs to the certificate, which is new each time and valid for over a year")
    func identity() throws {
        let (first, second) = (try #require(TrialCertificate(hosts: ["a"])), try #require(TrialCertificate(hosts: ["a"])))
        #expect(first.authority != second.authority && first.key != second.key)
        let identity = try #require(TLSIdentity(certificate: Array(first.certificate.utf8), key: Array(first.key.utf8)))
        #expect((395...397).contains(identity.daysLeft) && identity.names("a") && !identity.names("b") && !identity.names("127.0.0.1"))
        #expect(TLSIdentity(certificate: Array(first.certificate.utf8), key: Array(second.key.utf8)) == nil)
        #expect(TLSIdentity(certificate: [], key: []) == nil)
        #expect(TLSIdentity(certificate: Array(first.key.utf8), key: Array(first.certificate.utf8)) == nil)
    }

    @Test(
        "Hosts that are neither names nor addresses are refused", arguments: [[], [""], ["a b"], ["a,DNS:b"], ["a\nb"], ["127.0.0.1:80"]])
    func hosts(_ hosts: [String]) {
        #expect(TrialCertificate(hosts: hosts) == nil)
    }
}
