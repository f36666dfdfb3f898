/// A message of a storage server, and its time of arrival. The time in the message depends on the sender's clock.
package struct ReportedMessage: Sendable {
    package let message: NotifyMessage
    /// Unix milliseconds.
    package let receivedAt: Int64

    package init(_ message: NotifyMessage, receivedAt: Int64) {
        self.message = message
        self.receivedAt = receivedAt
    }
}
