import Core

/// The header Retry-After, RFC 9110: seconds, or a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
enum RetryAfter {
    /// Parses the header; nil if the text has neither form. A date in the past gives zero.
    static func parse(_ text: String, now: Timestamp) -> Duration? {
        if let seconds = number(text[...], digits: 1...18) { return .seconds(seconds) }
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[5] == "GMT", let day = number(parts[1], digits: 2...2),
            let month = months.firstIndex(of: String(parts[2])), let year = number(parts[3], digits: 4...4)
        else { return nil }
        let time = parts[4].split(separator: ":", omittingEmptySubsequences: false).compactMap { number($0, digits: 2...2) }
        guard time.count == 3, (1...31).contains(day), time[0] < 24, time[1] < 60, time[2] <= 60 else { return nil }
        let seconds = daysSince1970(year: year, month: month + 1, day: day) * 86_400 + time[0] * 3600 + time[1] * 60 + time[2]
        // The year 9999 exceeds 64 bits of nanoseconds; these sums saturate.
        let date = Timestamp(rawValue: 0) + .seconds(seconds)
        return max(.zero, date.since(now))
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func number(_ text: Substring, digits: ClosedRange<Int>) -> Int? {
        guard digits.contains(text.utf8.count), text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        return Int(text)
    }

    /// Gregorian calendar. Years start in March here, so that the leap day is the last day.
    private static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
        let year = month > 2 ? year : year - 1
        let monthFromMarch = (month + 9) % 12
        return year * 365 + year / 4 - year / 100 + year / 400 + (monthFromMarch * 153 + 2) / 5 + day - 1 - 719_468
    }
}
