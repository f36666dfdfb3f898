/// Why bytes from a peer are not the protobuf that they should be.
public enum WireError: Error, Hashable, Sendable {
    /// Not a protobuf, a field of the wrong wire type, or one that must be there is not.
    case malformed
    /// A string is not UTF-8.
    case notUTF8
    /// More entries of a list than its type allows.
    case tooMany
    /// A field, or the whole, is longer than its type allows.
    case tooLong
}
