import Foundation

/// Letters and digits of ASCII, and `-._~`: RFC 3986.
private let unreserved = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

/// Percent-encodes all but unreserved characters, for a path segment or a query value.
package func percentEncoded(_ text: String) -> String {
    // nil for text that is not Unicode, which a String always is.
    text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
}

/// Decodes a percent-encoded path; nil if it is malformed. Calls Foundation, which copies the text several times, only if the path has a `%`.
package func percentDecoded(_ path: some StringProtocol) -> String? {
    path.utf8.contains(UInt8(ascii: "%")) ? path.removingPercentEncoding : String(path)
}
