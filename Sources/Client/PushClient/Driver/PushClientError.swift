import Core
import Waku

/// Why a client's request failed.
public struct PushClientError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        case notPublished
        case noAnswer
        /// The answer violates the protocol.
        case badAnswer
        /// The request is invalid.
        case invalid
        /// Receiving or sending is not enabled.
        case notEnabled
    }

    public let code: Code
    public let message: String
    public var description: String { message }

    static let unusableMessageID = PushClientError(
        code: .invalid, message: "the message has no id, or one of more than \(OutgoingNotification.messageIDByteLimit) bytes")
    static let notForWebPush = PushClientError(
        code: .invalid, message: "a Web Push subscription is sent only to servers that are named with their VAPID key")
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
