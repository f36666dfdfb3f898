import Foundation
package import Core

/// One token that gorush could not deliver to: an entry of `logs` in its reply, or the body of its feedback hook.
///
///     {"notif_id": "…", "type": "failed-push", "platform": "ios", "token": "**…", "message": "…", "error": "Unregistered"}
///
/// All fields but `error` are optional. A value that is not a string counts as missing.
package struct GorushFailure: Sendable, CustomStringConvertible, CustomReflectable {
    /// Longer strings are truncated: gorush passes on text from other servers.
    static let maximumStringByteCount = 1024

    /// The id of the notification; nil from gorush versions that don't report it.
    package let notificationID: String?
    package let platform: Platform?
    /// The token with its first and last ten characters replaced by `*`, unless gorush runs with `hide_token: false`.
    package let maskedToken: DeviceToken
    /// The text from APNs or Firebase.
    package let error: String

    package var verdict: TokenVerdict { TokenVerdict(platform: platform, error: error) }

    /// Parses the body of a feedback hook; nil unless it is a JSON object about a failure.
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
        case "huawei": platform = .huawei
        default: platform = nil
        }
    }

    /// Whether the masked token matches this token. Masking keeps the length in bytes.
    package func masks(_ token: DeviceToken) -> Bool {
        token.bytes.count == maskedToken.bytes.count
            && zip(token.bytes, maskedToken.bytes).allSatisfy { $0 == $1 || $1 == UInt8(ascii: "*") }
    }

    /// Whether the masked token is of the same length as this token, and shows that it is another one.
    package func excludes(_ token: DeviceToken) -> Bool {
        token.bytes.count == maskedToken.bytes.count && !masks(token)
    }

    /// Omits the reason, which is text from other servers.
    package var description: String { "failure of \(notificationID ?? "unnamed notification"): \(verdict.rawValue)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
