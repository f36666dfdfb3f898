package import PushTypes

/// Why APNs or Firebase did not take a notification, as gorush passes it on. Anything that is not listed is ``other``.
///
/// The names are fixed: they may be logged, what gorush wrote may not.
package enum FailureReason: String, Sendable, CaseIterable {
    // APNs.
    case unregistered = "Unregistered"
    case expiredToken = "ExpiredToken"
    case badDeviceToken = "BadDeviceToken"
    case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
    case badTopic = "BadTopic"
    case topicDisallowed = "TopicDisallowed"
    // Firebase: by what ``FirebaseErrorText`` makes of its texts.
    case entityNotFound = "Requested entity was not found."
    case notRegistered = "NotRegistered"
    case invalidRegistration = "InvalidRegistration"
    case invalidArgument = "invalid argument"
    case senderIDMismatch = "SenderId mismatch"
    /// Something in the message but the token.
    case message = "message refused"
    /// The push service is overloaded, out of order, or not to be reached.
    case transient = "transient"
    /// gorush's own certificate, key or account is not what the push service wants.
    case credentials = "credentials"
    /// gorush had no room: it did not try at all, though it accepted the post.
    case queueFull = "max capacity reached"
    case other = "other"

    /// - Parameters:
    ///   - platform: nil when gorush named none that is known here.
    ///   - error: the reason, as gorush got it.
    package init(platform: Platform?, error: String) {
        if error == Self.queueFull.rawValue {
            self = .queueFull
            return
        }
        switch platform {
        case .apn: self = Self.apn(error)
        case .firebase: self = FirebaseErrorText.reason(for: error)
        default: self = .other
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
        case "BadCertificate", "BadCertificateEnvironment", "ExpiredProviderToken", "Forbidden", "InvalidProviderToken",
            "MissingProviderToken", "TooManyProviderTokenUpdates":
            .credentials
        default: .other
        }
    }

    package var verdict: TokenVerdict {
        switch self {
        case .unregistered, .expiredToken, .entityNotFound, .notRegistered: .dead
        case .badDeviceToken, .deviceTokenNotForTopic, .badTopic, .topicDisallowed, .invalidRegistration, .invalidArgument,
            .senderIDMismatch:
            .doubtful
        case .credentials: .operatorsMistake
        case .message, .transient, .queueFull, .other: .other
        }
    }
}
