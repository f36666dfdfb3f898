public import Foundation

/// The header `Date`, RFC 9110, in the form that servers send: `Sun, 06 Nov 1994 08:49:37 GMT`. To the second.
public enum HTTPDate {
    /// nil when it is no such date.
    public static func parse(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.date(from: text)
    }

    /// How far the clock of whoever sent it is ahead of this machine's: what is certain of it, since dates end at the second, and a
    /// message takes its time.
    ///
    /// - Parameters:
    ///   - start: when the request was sent.
    ///   - end: when the response was there.
    public static func clockAhead(_ text: String, from start: Date, to end: Date) -> Duration? {
        guard let date = parse(text) else { return nil }
        // It was written at some moment of that second.
        let (earliest, latest) = (date.timeIntervalSince(end), date.timeIntervalSince(start) + 1)
        let ahead = earliest > 0 ? earliest : min(latest, 0)
        return .milliseconds(Int64(max(-1e15, min(1e15, ahead * 1000))))
    }
}
