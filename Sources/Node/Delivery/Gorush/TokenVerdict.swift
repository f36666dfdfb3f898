package import Core

/// The conclusion from a failure about a device token.
package enum TokenVerdict: String, Sendable, CaseIterable {
    /// APNs or Firebase no longer knows the token: it will never work again.
    case dead
    /// The token is wrong, or the operator's topic, key or environment: failures are counted before the token is removed.
    case doubtful
    /// No evidence about the token: gorush can't use the push service until the operator corrects its configuration.
    case operatorsMistake
    /// No evidence about the token: another part of the notification was not accepted, such as a text that is too long. Senders choose the texts.
    case message
    /// No evidence about the token, for instance because the push service is failing.
    case other

    /// - Parameters:
    ///   - platform: nil if gorush named no known platform; the verdict is not dead then.
    ///   - error: the reason, as gorush received it from APNs or Firebase.
    package init(platform: Platform?, error: String) {
        self = FailureReason(platform: platform, error: error).verdict
    }
}
