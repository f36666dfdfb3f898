/// So many a second on average, and so many at once: `10/s burst 100`.
public struct RateLimit: Hashable, Sendable, CustomStringConvertible {
    public enum Unit: String, CaseIterable, Sendable {
        case second = "s"
        case minute = "min"
        case hour = "h"
        case day = "d"

        var seconds: Int64 {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3600
            case .day: 86_400
            }
        }
    }

    private static let range = 1...1_000_000

    public let count: Int
    public let unit: Unit
    /// How many may come at once after a while of none.
    public let burst: Int

    /// - Parameter burst: as many as in a unit of time by default.
    /// - Precondition: both from 1 to 1,000,000.
    public init(_ count: Int, per unit: Unit, burst: Int? = nil) {
        precondition(Self.range.contains(count) && Self.range.contains(burst ?? count))
        self.count = count
        self.unit = unit
        self.burst = burst ?? count
    }

    /// nil unless it is `N/s`, `N/min`, `N/h` or `N/d`, with ` burst N` behind it or not.
    public init?(parsing text: String) {
        let words = text.split(separator: " ")
        guard let rate = words.first?.split(separator: "/", omittingEmptySubsequences: false), rate.count == 2,
            let count = Int(rate[0]), Self.range.contains(count), let unit = Unit(rawValue: String(rate[1]))
        else { return nil }
        var burst = count
        if words.count > 1 {
            guard words.count == 3, words[1] == "burst", let number = Int(words[2]), Self.range.contains(number) else { return nil }
            burst = number
        }
        self.init(count, per: unit, burst: burst)
    }

    public var description: String { "\(count)/\(unit.rawValue) burst \(burst)" }

    /// Between two, in nanoseconds.
    var interval: Int64 { max(1, unit.seconds * 1_000_000_000 / Int64(count)) }
}
