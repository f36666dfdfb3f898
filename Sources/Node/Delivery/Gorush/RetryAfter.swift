import Core
import CurlClient

/// The header Retry-After, RFC 9110: seconds, or a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
enum RetryAfter {
    /// Parses the header; nil if the text has neither form. A date in the past gives zero.
    static func parse(_ text: String, now: Timestamp) -> Duration? {
        if (1...18).contains(text.utf8.count), text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            return Int(text).map { .seconds($0) }
        }
        // The year 9999 exceeds 64 bits of nanoseconds; these sums saturate.
        return HTTPDate.secondsSince1970(text).map { max(.zero, (Timestamp(rawValue: 0) + .seconds($0)).since(now)) }
    }
}
