/// Why a relay's configuration is invalid. The message includes the remedy.
public struct NwakuRelayError: Error, Hashable, CustomStringConvertible {
    /// The kinds of invalid settings.
    public enum Code: Hashable, Sendable {
        /// Not an http or https URL with a host, or one with a query or fragment.
        case invalidAddress
        /// The URL contains a user or password.
        case credentialsInAddress
        /// There is no pubsub topic to subscribe to.
        case noPubsubTopics
        /// A number is out of range.
        case invalidSetting
    }

    /// Distinguishes the settings in code; ``message`` is for people.
    public let code: Code
    /// The cause and the remedy, for an operator.
    public let message: String

    /// The message.
    public var description: String { message }
}
