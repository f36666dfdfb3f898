import CurlClient

/// The address of a node's REST API: an `http` or `https` URL with a host and optionally port and path.
public struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
    private let base: HTTPBaseURL

    /// - Parameter url: For instance `http://127.0.0.1:8645`. A path is kept, for nodes behind a proxy.
    /// - Throws: ``NwakuRelayError`` with `invalidAddress` or `credentialsInAddress`
    public init(_ url: String) throws(NwakuRelayError) {
        do {
            base = try HTTPBaseURL(parsing: url)
        } catch {
            // The error does not repeat the text, which may contain a password.
            switch error {
            case .userinfo:
                throw NwakuRelayError(
                    code: .credentialsInAddress,
                    message: "the node's address contains a user or a password: remove it; nwaku's REST API supports neither")
            case .query:
                throw NwakuRelayError(
                    code: .invalidAddress, message: "the node's address has a query or a fragment: end it after the port or the path")
            case .notHTTP, .noHost, .malformed:
                throw NwakuRelayError(
                    code: .invalidAddress, message: "the node's address is not an http or https URL: give one like http://127.0.0.1:8645")
            }
        }
    }

    /// - Parameter path: Starts with a slash and is percent-encoded.
    func appending(_ path: String) -> String {
        base.appending(path: path)
    }

    /// The URL.
    public var description: String { base.description }
}
