public import StatusProtocol

/// What a failure says of a device token.
public enum TokenVerdict: String, Sendable, CaseIterable {
    /// APNs or Firebase knows the token no more: it will never work again.
    case dead
    /// The token, or the operator's own topic, key or environment: to be counted before anything is done about it.
    case doubtful
    /// Nothing about the token, such as a push service that is out of order.
    case other

    /// - Parameters:
    ///   - platform: nil when gorush named none that is known here; nothing is dead then.
    ///   - error: the reason, as gorush got it from APNs or Firebase.
    public init(platform: Platform?, error: String) {
        switch (platform, error) {
        case (.apn, "Unregistered"), (.apn, "ExpiredToken"): self = .dead
        case (.firebase, "Requested entity was not found."), (.firebase, "NotRegistered"): self = .dead
        case (.apn, "BadDeviceToken"), (.apn, "DeviceTokenNotForTopic"): self = .doubtful
        case (.firebase, let error) where Self.blamesArgument(error): self = .doubtful
        default: self = .other
        }
    }

    /// Firebase has several ways to say that a token, or the payload, is not what it expects.
    private static func blamesArgument(_ error: String) -> Bool {
        let error = error.lowercased()
        return error.contains("invalid argument") || error.contains("invalid_argument") || error.contains("invalid-argument")
            || error.contains("not a valid fcm registration token") || error == "invalidregistration"
    }
}
