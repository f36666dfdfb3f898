/// Why a relay can't be made from its configuration. The message says what to do.
package struct NwakuRelayError: Error, Hashable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Not an http or https URL with a host, or with more behind it than a path.
        case invalidAddress
        /// The URL holds a user or a password.
        case credentialsInAddress
        /// No pubsub topic to listen on.
        case noPubsubTopics
        /// A number out of its range.
        case invalidSetting
    }

    package let code: Code
    package let message: String

    package init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
