/// Why a relay can't be made from its configuration. The message says what to do.
public struct NwakuRelayError: Error, Hashable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// Not an http or https URL with a host, or with more behind it than a path.
        case invalidAddress
        /// The URL holds a user or a password.
        case credentialsInAddress
        /// No pubsub topic to listen on.
        case noPubsubTopics
        /// A number out of its range.
        case invalidSetting
    }

    public let code: Code
    public let message: String

    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
