import Foundation

/// Decodes a percent-encoded path; nil if it is malformed. Calls Foundation, which copies the text several times, only if the path has a `%`.
package func percentDecoded(_ path: some StringProtocol) -> String? {
    path.utf8.contains(UInt8(ascii: "%")) ? path.removingPercentEncoding : String(path)
}
