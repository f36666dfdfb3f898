/// Why bytes from the network could not be decoded as a protobuf message.
public enum ProtobufError: Error, Hashable, Sendable {
    /// Not a protobuf, a field with the wrong wire type, or a required field is missing.
    case malformed
    /// A string field is not UTF-8.
    case notUTF8
    /// More fields, or more entries of a repeated field, than the message type allows.
    case tooMany
    /// A field, or the whole message, is longer than its type allows.
    case tooLong
}
