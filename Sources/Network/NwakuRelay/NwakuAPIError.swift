import CurlClient

/// Why a call to a node's REST API failed.
package struct NwakuAPIError: Error, Hashable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// No response: the connection was refused or lost.
        case unreachable
        case tooSlow
        /// The node's error status, of the HTTP response or inside a store's response.
        case status(Int)
        /// A response of an unexpected form.
        case unreadable
        case tooLong
    }

    package let code: Code
    /// One line for an operator.
    package let message: String

    package var description: String { message }

    /// Whether a smaller store query may succeed. Includes server errors: a node that forwards queries to another store has timeouts of its own.
    var isTooMuch: Bool {
        switch code {
        case .tooLong, .tooSlow: true
        case .status(let status): status >= 500 && status != 503
        case .unreachable, .unreadable: false
        }
    }
}

extension NwakuAPIError {
    static func noAnswer(_ error: HTTPError, from address: NodeAddress) -> NwakuAPIError {
        if error.code == .tooLarge {
            return NwakuAPIError(code: .tooLong, message: "the node's answer is too long: \(error)")
        }
        return NwakuAPIError(
            code: error.code == .timeout ? .tooSlow : .unreachable,
            message: "the node at \(address) can't be reached, does it run with --rest=true? \(error)")
    }

    static func refused(_ status: Int, path: String, text: String) -> NwakuAPIError {
        // The path without the query, which contains topics.
        let words = text.isEmpty ? "" : ": \(text)"
        return NwakuAPIError(code: .status(status), message: "the node answered \(status) to \(path)\(words)")
    }

    static func unreadable(_ path: String) -> NwakuAPIError {
        NwakuAPIError(code: .unreadable, message: "the node's answer to \(path) can't be read: is this nwaku's REST API?")
    }
}
