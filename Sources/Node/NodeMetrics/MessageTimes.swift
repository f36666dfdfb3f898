/// The start times for measuring how long a message takes.
public struct MessageTimes: Sendable {
    /// Senders choose timestamps freely, and those of a few messages would make a sum meaningless.
    private static let longestDelay = Duration.seconds(3600)

    package let received: ContinuousClock.Instant
    /// The time from the sender's timestamp to the receipt, measured by two clocks; from 0 to an hour. nil without a timestamp.
    package let delay: Duration?
    /// The protocol of the message.
    package let `protocol`: ProtocolLabel
    /// nil when the message is not traced.
    package var trace: MessageTrace?

    package init(received: ContinuousClock.Instant, delay: Duration?, protocol: ProtocolLabel = .status, trace: MessageTrace? = nil) {
        self.received = received
        self.delay = delay.map { min($0, Self.longestDelay) }
        self.protocol = `protocol`
        self.trace = trace
    }
}
