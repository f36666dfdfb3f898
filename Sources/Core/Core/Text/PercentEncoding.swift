import Foundation

/// Percent-encodes all but unreserved characters, RFC 3986, for a path segment or a query value.
package func percentEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    for byte in text.utf8 {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
            result.append(byte)
        default:
            result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: result, as: UTF8.self)
}

/// Decodes a percent-encoded path; nil if it is malformed. Calls Foundation, which copies the text several times, only if the path has a `%`.
package func percentDecoded(_ path: some StringProtocol) -> String? {
    path.utf8.contains(UInt8(ascii: "%")) ? path.removingPercentEncoding : String(path)
}
