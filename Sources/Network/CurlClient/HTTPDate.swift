package import Foundation

/// The `Date` header, RFC 9110: `Sun, 06 Nov 1994 08:49:37 GMT`, with a resolution of one second.
package enum HTTPDate {
    /// nil when the text is not such a date.
    package static func parse(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.date(from: text)
    }

    /// How far the server's clock is certainly ahead of this machine's, below zero when it is behind: the smallest difference that explains
    /// the date, given its resolution and the time that the request took. nil when the text is not a date.
    ///
    /// - Parameters:
    ///   - text: The value of the `Date` header.
    ///   - start: When the request was sent.
    ///   - end: When the response was received.
    package static func clockAhead(_ text: String, from start: Date, to end: Date) -> Duration? {
        guard let date = parse(text) else { return nil }
        // The date was written at some time within that second.
        let (earliest, latest) = (date.timeIntervalSince(end), date.timeIntervalSince(start) + 1)
        let ahead = earliest > 0 ? earliest : min(latest, 0)
        return .milliseconds(Int64(max(-1e15, min(1e15, ahead * 1000))))
    }
}
