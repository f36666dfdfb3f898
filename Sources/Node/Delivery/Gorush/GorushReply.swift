import Foundation

/// gorush's response to accepted notifications.
///
///     {"success": "ok", "counts": 2, "logs": [failure, …]}
///
/// `logs` has entries only if gorush runs with `sync: true`; otherwise failures are sent by its feedback hook. Parsed leniently: the status has
/// already shown that the notifications are accepted, so missing or unexpected parts are ignored.
package struct GorushReply: Sendable {
    /// The maximum number of entries read from `logs`; further ones are ignored. A request has at most 100 tokens.
    static let maximumFailureCount = 1000
    /// The maximum number of values and members in a body; a larger one is ignored, as decoding takes some hundred bytes for each, even for empty
    /// objects. A thousand failures have 8,000.
    static let maximumValueCount = 32_768

    /// Number of tokens that gorush counted as accepted; nil if it did not report it. Excludes tokens of a disabled platform.
    package let counts: Int?
    package let failures: [GorushFailure]

    /// Whether the body is HTML or XML, which gorush never sends.
    static func isWebPage(_ body: [UInt8]) -> Bool {
        body.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "<")
    }

    package init(parsing bytes: [UInt8]) {
        // Each value except the first follows one of these characters, or begins with one.
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
