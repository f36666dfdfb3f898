import Core
import ArgumentParser
import Foundation

/// A time such as `2026-05-04T13:00:00Z`, or an age such as `90m`.
struct TimeArgument: DescribedArgument {
    static let allowedValues = "a time such as 2026-05-04T13:00:00Z, or an age such as 90m"

    let time: Timestamp

    init?(argument: String) {
        if let ago = DurationArgument(argument: argument) {
            time = .now() - ago.duration
        } else if let date = try? Date(argument, strategy: .iso8601), (0...9e9).contains(date.timeIntervalSince1970) {
            time = Timestamp(rawValue: Int64(date.timeIntervalSince1970) * 1_000_000_000)
        } else {
            return nil
        }
    }
}

extension Timestamp {
    var formatted: String {
        Date(timeIntervalSince1970: TimeInterval(rawValue / 1_000_000_000)).formatted(.iso8601)
    }
}
