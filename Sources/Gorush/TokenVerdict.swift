package import PushTypes

/// What a failure says of a device token.
package enum TokenVerdict: String, Sendable, CaseIterable {
    /// APNs or Firebase knows the token no more: it will never work again.
    case dead
    /// The token, or the operator's own topic, key or environment: to be counted before anything is done about it.
    case doubtful
    /// Nothing about the token: gorush can't speak to the push service at all until the operator mends it.
    case operatorsMistake
    /// Nothing about the token, such as a push service that is out of order.
    case other

    /// - Parameters:
    ///   - platform: nil when gorush named none that is known here; nothing is dead then.
    ///   - error: the reason, as gorush got it from APNs or Firebase.
    package init(platform: Platform?, error: String) {
        self = FailureReason(platform: platform, error: error).verdict
    }
}
