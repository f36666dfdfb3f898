package import Core

/// What a failure says about a device token.
package enum TokenVerdict: String, Sendable, CaseIterable {
    /// APNs or Firebase no longer knows the token: it will never work again.
    case dead
    /// Either the token, or the operator's topic, key or environment, is wrong: failures are counted before the token is removed.
    case doubtful
    /// Nothing about the token: gorush can't use the push service until the operator corrects its configuration.
    case operatorsMistake
    /// Nothing about the token, for instance a failing push service.
    case other

    /// - Parameters:
    ///   - platform: nil if gorush named no known platform; the verdict is not dead then.
    ///   - error: the reason, as gorush received it from APNs or Firebase.
    package init(platform: Platform?, error: String) {
        self = FailureReason(platform: platform, error: error).verdict
    }
}
