import Foundation

/// Percent-encodes all but unreserved characters, RFC 3986, for a path segment or a query value.
package func percentEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    for byte in text.utf8 {
        if byte.isLetterOrDigit || "-._~".utf8.contains(byte) {
            result.append(byte)
        } else {
            result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: result, as: UTF8.self)
}

/// Decodes a percent-encoded path; nil if it is malformed. Calls Foundation, which copies the text several times, only if the path has a `%`.
package func percentDecoded(_ path: some StringProtocol) -> String? {
    path.utf8.contains(UInt8(ascii: "%")) ? path.removingPercentEncoding : String(path)
}
