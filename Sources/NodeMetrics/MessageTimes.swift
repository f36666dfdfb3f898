/// The start times for measuring how long a message takes.
package struct MessageTimes: Sendable {
    package let received: ContinuousClock.Instant
    /// From the sender's timestamp to the receipt, by two clocks; not negative. nil without a timestamp.
    package let delay: Duration?

    package init(received: ContinuousClock.Instant, delay: Duration?) {
        self.received = received
        self.delay = delay
    }
}
