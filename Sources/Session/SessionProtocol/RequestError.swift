/// The error that a refused subscription or unsubscription is answered with.
package struct RequestError: Error, Hashable, Sendable {
    package enum Code: Int, Sendable, CaseIterable {
        /// The body or a field is missing, malformed or out of range.
        case badInput = 1
        /// The service is unknown, or no gorush endpoint serves it.
        case serviceNotAvailable = 2
        /// The store did not answer in time.
        case serviceTimeout = 3
        /// A signature, key or subaccount is not valid, `sig_ts` is outside of its window, or there are too many devices.
        case error = 4
        /// The store failed: nothing was stored.
        case internalError = 5
    }

    package let code: Code
    /// Names the field. Contains no token, key or signature, nor any other text of the request.
    package let message: String
    /// For temporary errors, the seconds after which to repeat the same request; the HTTP status is 503. nil for errors of the request itself.
    package let retryAfter: Int?

    package init(_ code: Code, _ message: String, retryAfter: Int? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }

    static func badInput(_ field: StaticString, _ problem: String) -> RequestError {
        RequestError(.badInput, "\(field): \(problem)")
    }
}
