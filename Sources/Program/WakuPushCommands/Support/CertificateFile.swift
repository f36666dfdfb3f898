import CurlClient
import Foundation
import HTTPService

/// Files of certificate authorities in PEM format.
enum CertificateFile {
    /// - Throws: ``CommandFailure`` unless libcurl, which reads the file at the first connection, can load all of it.
    static func trust(_ file: String, option: String) throws(CommandFailure) -> CurlConfiguration.Trust {
        guard let content = FileManager.default.contents(atPath: file) else {
            throw CommandFailure(.data, "certificates \(file) can't be read: give \(option) a PEM file")
        }
        guard let count = AuthorityFile.certificateCount(Array(content)) else {
            throw CommandFailure(.data, "certificates \(file) are damaged or cut off: give \(option) a complete PEM file")
        }
        guard count > 0 else {
            throw CommandFailure(.data, "certificates \(file) has no certificate in PEM format: give \(option) a PEM file")
        }
        return .file(path: file)
    }
}
