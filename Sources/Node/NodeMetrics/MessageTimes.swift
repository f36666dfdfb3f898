/// The start times for measuring how long a message takes.
public struct MessageTimes: Sendable {
    package let received: ContinuousClock.Instant
    /// The time from the sender's timestamp to the receipt, measured by two clocks; not negative. nil without a timestamp.
    package let delay: Duration?
    /// The protocol of the message.
    package let `protocol`: ProtocolLabel
    /// nil when the message is not traced.
    package var trace: MessageTrace?

    package init(received: ContinuousClock.Instant, delay: Duration?, protocol: ProtocolLabel = .status, trace: MessageTrace? = nil) {
        self.received = received
        self.delay = delay
        self.protocol = `protocol`
        self.trace = trace
    }
}
