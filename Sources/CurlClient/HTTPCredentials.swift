/// How a client shows who it is. Prints as `<redacted>`, also inside of other values.
package enum HTTPCredentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    case none
    /// RFC 7617. The user has no colon in it.
    case basic(user: String, password: String)
    /// RFC 6750.
    case bearer(token: String)

    package var description: String { "<redacted>" }
    package var debugDescription: String { "<redacted>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
