import Core
import Foundation

extension Timestamp {
    var formatted: String {
        Date(timeIntervalSince1970: TimeInterval(rawValue / 1_000_000_000)).formatted(.iso8601)
    }
}
