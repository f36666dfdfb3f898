import Core
import Waku

/// Why a client did not get what it asked for.
public struct PushClientError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        case notPublished
        case noAnswer
        /// The answer is not what the protocol allows.
        case badAnswer
        /// What is asked for can't be done as it is given.
        case invalid
        /// Receiving, or sending, was not switched on.
        case notEnabled
    }

    public let code: Code
    public let message: String
    public var description: String { message }

    static let unusableMessageID = PushClientError(
        code: .invalid, message: "the message has no id, or one of more than \(OutgoingNotification.messageIDByteLimit) bytes")
    static let receivingIsOff = PushClientError(
        code: .notEnabled, message: "receiving is switched off: switch it on with setReceiving(true) or enablesReceiving")
}

extension Duration {
    /// `3 s`, `300 ms`.
    var formatted: String {
        let milliseconds = nanoseconds / 1_000_000
        return milliseconds.isMultiple(of: 1000) ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }
}
