package import Core

/// The reason why APNs or Firebase did not accept a notification, as reported by gorush. Unlisted reasons are ``other``.
///
/// The names are constants, so they may be logged, unlike the text from gorush.
package enum FailureReason: String, Sendable, CaseIterable {
    // APNs.
    case unregistered = "Unregistered"
    case expiredToken = "ExpiredToken"
    case badDeviceToken = "BadDeviceToken"
    case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
    case badTopic = "BadTopic"
    case topicDisallowed = "TopicDisallowed"
    // Firebase, from texts in ``FirebaseErrorText``; some also of APNs.
    case entityNotFound = "Requested entity was not found."
    case notRegistered = "NotRegistered"
    case invalidRegistration = "InvalidRegistration"
    case invalidArgument = "invalid argument"
    case senderIDMismatch = "SenderId mismatch"
    /// A part of the message other than the token was not accepted, as when it is too long.
    case message = "message refused"
    /// The push service is overloaded, failing or unreachable.
    case transient = "transient"
    /// The push service does not accept gorush's own certificate, key or account.
    case credentials = "credentials"
    /// gorush's queue was full: it accepted the post but did not try to deliver the notification.
    case queueFull = "max capacity reached"
    /// A Web Push service answered 404 or 410: the subscription has ended.
    case subscriptionGone = "subscription gone"
    case other = "other"

    /// - Parameter platform: nil if gorush named no known platform.
    package init(platform: Platform?, error: String) {
        if error == Self.queueFull.rawValue {
            self = .queueFull
            return
        }
        switch platform {
        case .apn: self = Self.apn(error)
        case .firebase: self = FirebaseErrorText.reason(for: error)
        // gorush does not report which of Huawei's tokens failed, nor why.
        case .huawei, .webPush, nil: self = .other
        }
    }

    private static func apn(_ error: String) -> FailureReason {
        switch error {
        case "Unregistered": .unregistered
        case "ExpiredToken": .expiredToken
        case "BadDeviceToken": .badDeviceToken
        case "DeviceTokenNotForTopic": .deviceTokenNotForTopic
        case "BadTopic": .badTopic
        case "TopicDisallowed": .topicDisallowed
        case "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken", "ExpiredProviderToken", "Forbidden",
            "InvalidProviderToken", "MissingProviderToken", "TooManyProviderTokenUpdates", "UnrelatedKeyIdInToken":
            .credentials
        case "PayloadTooLarge": .message
        // Apple ends the handshake if the certificate has expired or was revoked. gorush reports the text of Go's HTTP client.
        case _ where error.contains(": remote error: tls: "): .credentials
        default: .other
        }
    }

    package var verdict: TokenVerdict {
        switch self {
        case .unregistered, .expiredToken, .entityNotFound, .notRegistered, .subscriptionGone: .dead
        case .badDeviceToken, .deviceTokenNotForTopic, .badTopic, .topicDisallowed, .invalidRegistration, .invalidArgument,
            .senderIDMismatch:
            .doubtful
        case .credentials: .operatorsMistake
        case .message: .message
        case .transient, .queueFull, .other: .other
        }
    }
}
