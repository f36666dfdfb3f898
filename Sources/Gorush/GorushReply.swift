import Foundation

/// What gorush answers to accepted notifications.
///
///     {"success": "ok", "counts": 2, "logs": [failure, …]}
///
/// `logs` is filled only when gorush runs with `sync: true`; otherwise failures come by its feedback hook. Read leniently: the status has
/// already said that the notifications are accepted, so what is missing or strange is left out.
package struct GorushReply: Sendable {
    /// Entries beyond are not looked at. A request has at most 100 tokens.
    static let maximumFailureCount = 1000
    /// A body with more values and members says nothing: each takes some hundred bytes to decode, empty objects too. A thousand failures have
    /// 8,000.
    static let maximumValueCount = 32_768

    /// Tokens that gorush took; nil when it did not say. Those of a platform that is switched off are not among them.
    package let counts: Int?
    package let failures: [GorushFailure]

    package init(parsing bytes: [UInt8]) {
        // Each value but the first comes behind one of these, or opens with one.
        let valueCount = bytes.count { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "{") }
        guard valueCount <= Self.maximumValueCount else {
            (counts, failures) = (nil, [])
            return
        }
        let object = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        counts = (object?["counts"] as? Int).flatMap { $0 >= 0 ? $0 : nil }
        let logs = object?["logs"] as? [Any] ?? []
        failures = logs.prefix(Self.maximumFailureCount).compactMap { ($0 as? [String: Any]).flatMap(GorushFailure.init) }
    }
}
