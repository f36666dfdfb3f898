/// Why a relay's configuration is invalid. The message includes the remedy.
package struct NwakuRelayError: Error, Hashable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Not an http or https URL with a host, or one with a query or fragment.
        case invalidAddress
        /// The URL contains a user or password.
        case credentialsInAddress
        /// There is no pubsub topic to subscribe to.
        case noPubsubTopics
        /// A number is out of range.
        case invalidSetting
    }

    package let code: Code
    package let message: String

    package var description: String { message }
}
