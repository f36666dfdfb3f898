/// The credentials that a client sends. Prints as `<redacted>`, also inside other values.
package enum HTTPCredentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    case none
    /// RFC 7617. The user must not contain a colon.
    case basic(user: String, password: String)
    /// RFC 6750.
    case bearer(token: String)

    package var description: String { "<redacted>" }
    package var debugDescription: String { "<redacted>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
