import Foundation
package import PushTypes

/// One token that gorush could not deliver to: an entry of `logs` in its reply, or the body of its feedback hook.
///
///     {"notif_id": "…", "type": "failed-push", "platform": "ios", "token": "**…", "message": "…", "error": "Unregistered"}
///
/// Everything but `error` may be missing. What is not a string counts as missing.
package struct GorushFailure: Sendable, CustomStringConvertible, CustomReflectable {
    /// Longer strings are cut: gorush passes on what others answered.
    static let maximumStringByteCount = 1024

    /// The id of the notification; nil from gorush versions that don't report it.
    package let notificationID: String?
    package let platform: Platform?
    /// With its first and last ten characters as `*`, unless gorush runs with `hide_token: false`.
    package let maskedToken: DeviceToken
    /// As APNs or Firebase put it.
    package let error: String

    package var verdict: TokenVerdict { TokenVerdict(platform: platform, error: error) }

    /// The body of a feedback hook; nil unless it is a JSON object about a failure.
    package init?(parsing bytes: [UInt8]) {
        guard let object = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] else { return nil }
        self.init(object)
    }

    init?(_ object: [String: Any]) {
        func string(_ name: String) -> String? {
            (object[name] as? String).map { String(decoding: $0.utf8.prefix(Self.maximumStringByteCount), as: UTF8.self) }
        }
        guard let error = string("error"), !error.isEmpty, string("type") != "succeeded-push" else { return nil }
        self.error = error
        notificationID = string("notif_id")
        maskedToken = DeviceToken(string("token") ?? "")
        switch string("platform") {
        case "ios": platform = .apn
        case "android": platform = .firebase
        default: platform = nil
        }
    }

    /// Whether this can be the mask of a token. gorush leaves the length as it is, in bytes.
    package func masks(_ token: DeviceToken) -> Bool {
        token.bytes.count == maskedToken.bytes.count
            && zip(token.bytes, maskedToken.bytes).allSatisfy { $0 == $1 || $1 == UInt8(ascii: "*") }
    }

    /// The reason is what others wrote: it is not printed either.
    package var description: String { "failure of \(notificationID ?? "unnamed notification"): \(verdict.rawValue)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
