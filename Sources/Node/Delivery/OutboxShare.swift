/// Which part of the outbox this node posts, where several nodes share it.
package protocol OutboxShare: Sendable {
    /// Whether this node posts for a device at present.
    func owns(_ device: DeviceID) -> Bool

    /// Notes in the store that this node is about to post these, and returns those that it may post now. The others may be another node's by
    /// now, or stand behind an older one of their device.
    ///
    /// - Parameter deliveries: and whether they were taken with a former owner's mark. One that has such a mark and was taken without it is not
    ///   posted: it must be taken anew.
    func mark(_ deliveries: [(waiting: WaitingDelivery, hasUnknownOutcome: Bool)]) async -> Set<Int64>
}
