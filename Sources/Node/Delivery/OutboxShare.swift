/// The part of a shared outbox that this node posts.
package protocol OutboxShare: Sendable {
    /// Whether this node currently posts for a device.
    func owns(_ device: DeviceID) -> Bool

    /// Marks deliveries in the store as about to be posted by this node, and returns those that it may post now. The others may belong to another
    /// node by now, or wait behind an older delivery of their device.
    ///
    /// - Parameter deliveries: the deliveries, and whether each was loaded with a former owner's mark. A delivery that has such a mark but was loaded
    ///   without it is not posted: it must be loaded again.
    func mark(_ deliveries: [(waiting: WaitingDelivery, hasUnknownOutcome: Bool)]) async -> Set<Int64>
}
