package import NodeMetrics
package import RateLimits

/// The counters of one protocol's refusals under ``Metric/limited``, one for each limit that the protocol has.
package struct LimitCounters: Sendable {
    /// In the order of the limits.
    package let all: [Counter]
    private let byLimit: [RateLimitTable.Refusal: Counter]

    /// - Parameters:
    ///   - title: precedes the words for the limit in the names of the counters.
    ///   - words: for limits that the protocol calls otherwise than ``RateLimitTable/Refusal/rawValue``.
    package init(
        _ title: String, _ label: ProtocolLabel, _ limits: [RateLimitTable.Refusal], words: [RateLimitTable.Refusal: String] = [:]
    ) {
        all = limits.map { limit in
            let words = words[limit] ?? Self.words[limit] ?? limit.rawValue
            return Counter("\(title): \(words)", .limited, label, limit)
        }
        byLimit = Dictionary(uniqueKeysWithValues: zip(limits, all))
    }

    private static let words: [RateLimitTable.Refusal: String] = [
        .topicKeys: "displaced while waiting for a topic key", .segments: "displaced incomplete messages",
    ]

    /// nil for limits of other protocols.
    package subscript(limit: RateLimitTable.Refusal) -> Counter? { byLimit[limit] }

    /// The limits of notifications, which refuse some for good.
    package var notifications: [Counter] { counters(of: .notificationsByTarget, .notifications) }

    package func counters(of limits: RateLimitTable.Refusal...) -> [Counter] { limits.compactMap { byLimit[$0] } }
}
