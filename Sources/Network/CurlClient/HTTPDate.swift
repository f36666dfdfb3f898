import CCurl
package import Foundation

/// The `Date` header, RFC 9110: `Sun, 06 Nov 1994 08:49:37 GMT`, with a resolution of one second.
package enum HTTPDate {
    /// The date as a number of seconds; nil when the text is not a date. The two older forms of that RFC are read too.
    ///
    /// By libcurl, as Foundation's `DateFormatter` traps on some texts, and this one comes from another machine.
    package static func secondsSince1970(_ text: String) -> Int? {
        let seconds = curl_getdate(text, nil)
        return seconds == -1 ? nil : seconds
    }

    /// How far the server's clock is certainly ahead of this machine's, below zero when it is behind: the smallest difference that explains
    /// the date, given its resolution and the time that the request took. nil when the text is not a date.
    ///
    /// - Parameters:
    ///   - text: The value of the `Date` header.
    ///   - start: When the request was sent.
    ///   - end: When the response was received.
    package static func clockAhead(_ text: String, from start: Date, to end: Date) -> Duration? {
        guard let date = secondsSince1970(text).map({ Date(timeIntervalSince1970: Double($0)) }) else { return nil }
        // The date was written at some time within that second.
        let (earliest, latest) = (date.timeIntervalSince(end), date.timeIntervalSince(start) + 1)
        let ahead = earliest > 0 ? earliest : min(latest, 0)
        return .milliseconds(Int64(max(-1e15, min(1e15, ahead * 1000))))
    }
}
