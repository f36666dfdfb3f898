/// How a client shows who it is. Prints as `<redacted>`, also inside of other values.
public enum HTTPCredentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    case none
    /// RFC 7617. The user has no colon in it.
    case basic(user: String, password: String)
    /// RFC 6750.
    case bearer(token: String)

    public var description: String { "<redacted>" }
    public var debugDescription: String { "<redacted>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
