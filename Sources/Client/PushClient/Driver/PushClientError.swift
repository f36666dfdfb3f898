import Core

/// Why a client's request failed.
public struct PushClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failures, for callers that handle them differently.
    public enum Code: Hashable, Sendable {
        /// The relay did not accept the message, or the subscription for its answer.
        case notPublished
        /// The server did not answer within the timeout.
        case noAnswer
        /// The answer violates the protocol.
        case badAnswer
        /// The request is invalid.
        case invalid
        /// Receiving or sending is not enabled.
        case notEnabled
        /// No server is known that could answer: none is listed, and no advertisement names one.
        case noServerKnown
        /// ``StatusPushClient/run()`` is not running, so that nothing is sent or received.
        case notRunning
        /// The caller's task was cancelled.
        case cancelled
    }

    /// Distinguishes failures in code; ``message`` is for people.
    public let code: Code
    /// The problem and its remedy in English, without secrets.
    public let message: String
    /// Same as ``message``.
    public var description: String { message }

    static let unusableMessageID = PushClientError(
        code: .invalid, message: "the message has no id, or one of more than \(OutgoingNotification.messageIDByteLimit) bytes")
    static let tooLong = PushClientError(code: .invalid, message: "the message is longer than a notification can be")
    static let noServerKnown = PushClientError(
        code: .noServerKnown,
        message:
            "no server of this registrant is known: no advertisement of it was found, and no server was named: check its key, or name its server"
    )
    static func noAnswer(within timeout: Duration) -> PushClientError {
        PushClientError(code: .noAnswer, message: "the server did not answer within \(timeout.formatted)")
    }

    static func notPublished(within timeout: Duration) -> PushClientError {
        PushClientError(code: .notPublished, message: "nothing was published within \(timeout.formatted): is the relay's node reachable?")
    }

    static let unreadable = PushClientError(code: .badAnswer, message: "the server's answer can't be read")
    static let notRunning = PushClientError(code: .notRunning, message: "the client does not run: call run() in a task of its own first")
    static let cancelled = PushClientError(code: .cancelled, message: "the task was cancelled")
    static let notForWebPush = PushClientError(
        code: .invalid, message: "a Web Push subscription is sent only to servers that are named with their VAPID key")
    static let unusableVAPIDKey = PushClientError(code: .invalid, message: "a server's VAPID key is not a public key of P-256 in base64url")
    static let otherVAPIDKey = PushClientError(
        code: .invalid, message: "the Web Push subscription was made for another VAPID key than the server's: subscribe again with that one"
    )
    static let receivingIsOff = PushClientError(
        code: .notEnabled, message: "receiving is switched off: switch it on with setReceiving(true) or enablesReceiving")
    static let sendingIsOff = PushClientError(
        code: .notEnabled, message: "sending is switched off: switch it on with setSending(true)")
}

extension Duration {
    /// `3 s`, `300 ms`.
    var formatted: String {
        let milliseconds = nanoseconds / 1_000_000
        return milliseconds.isMultiple(of: 1000) ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }
}
