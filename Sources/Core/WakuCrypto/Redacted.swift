/// A value that must not reach a log, an error or a metric: it prints as `<redacted>`, also inside other values, and reflection shows no part of it.
public protocol Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
    /// `<redacted>`, so that interpolation into a log or error message does not reveal the value.
    public var description: String { "<redacted>" }
    /// `<redacted>`, also in collections and other values that contain it.
    public var debugDescription: String { "<redacted>" }
    /// Without children, so that `dump` and reflection do not show the value.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
