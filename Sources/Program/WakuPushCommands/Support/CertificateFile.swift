import CurlClient
import Foundation

/// Files of certificate authorities in PEM format.
enum CertificateFile {
    /// - Throws: ``CommandFailure`` if the file can't be read or has no certificate.
    static func trust(_ file: String, option: String) throws(CommandFailure) -> CurlConfiguration.Trust {
        guard let content = FileManager.default.contents(atPath: file) else {
            throw CommandFailure(.data, "certificates \(file) can't be read: give \(option) a PEM file")
        }
        guard hasCertificate(String(decoding: content, as: UTF8.self)) else {
            throw CommandFailure(.data, "certificates \(file) has no certificate in PEM format: give \(option) a PEM file")
        }
        return .file(path: file)
    }

    /// Whether a text has a PEM block of a DER structure. libcurl reads the certificates themselves, at the first connection.
    private static func hasCertificate(_ text: String) -> Bool {
        guard let start = text.firstRange(of: "-----BEGIN CERTIFICATE-----"),
            let end = text[start.upperBound...].firstRange(of: "-----END CERTIFICATE-----"),
            let der = Data(base64Encoded: String(text[start.upperBound..<end.lowerBound]), options: .ignoreUnknownCharacters)
        else { return false }
        return der.first == 0x30 && der.count > 64
    }
}
