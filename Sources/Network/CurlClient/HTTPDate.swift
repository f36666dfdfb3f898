package import Foundation

/// The `Date` header, RFC 9110: `Sun, 06 Nov 1994 08:49:37 GMT`, with a resolution of one second.
package enum HTTPDate {
    /// The date as a number of seconds; nil when the text is not such a date. The day of the week is ignored.
    ///
    /// Foundation's `DateFormatter` traps on some texts, and this one comes from another machine.
    package static func secondsSince1970(_ text: String) -> Int? {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[5] == "GMT", let day = number(parts[1], digits: 2),
            let month = months.firstIndex(of: String(parts[2])),
            let year = number(parts[3], digits: 4)
        else { return nil }
        let time = parts[4].split(separator: ":", omittingEmptySubsequences: false).compactMap { number($0, digits: 2) }
        guard time.count == 3, (1...31).contains(day), time[0] < 24, time[1] < 60, time[2] <= 60 else { return nil }
        return daysSince1970(year: year, month: month + 1, day: day) * 86_400 + time[0] * 3600 + time[1] * 60 + time[2]
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func number(_ text: Substring, digits: Int) -> Int? {
        guard text.utf8.count == digits, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return Int(text)
    }

    /// Gregorian calendar. Years start in March here, so that the leap day is the last day.
    private static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
        let year = month > 2 ? year : year - 1
        let monthFromMarch = (month + 9) % 12
        return year * 365 + year / 4 - year / 100 + year / 400 + (monthFromMarch * 153 + 2) / 5 + day - 1 - 719_468
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
