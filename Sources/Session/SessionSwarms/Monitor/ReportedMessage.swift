package import SessionProtocol

/// A message of a storage server, and when it came. Its own time is the sender's clock.
package struct ReportedMessage: Sendable {
    package let message: NotifyMessage
    /// Unix milliseconds.
    package let receivedAt: Int64

    package init(_ message: NotifyMessage, receivedAt: Int64) {
        self.message = message
        self.receivedAt = receivedAt
    }
}
