package import Core

/// Identifies a charge by a hash that is seeded in each process. Limits make it once, however often the store decides on the command: again if
/// rows have changed since they were read, or if the commit of other commands with it failed.
package struct ChargeID: Hashable, Sendable {
    private let hash: Int

    /// - Parameters:
    ///   - content: a digest or an id of the message or delivery.
    ///   - now: the time of the decision: the same content pays again if it comes again later. nil: it does not pay again.
    package init(_ content: [UInt8], at now: Timestamp? = nil) {
        var hasher = Hasher()
        content.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(now)
        hash = hasher.finalize()
    }

    /// A notification, whichever message leads to it.
    package init(_ delivery: DeliveryID, at now: Timestamp? = nil) {
        self.init(delivery.bytes, at: now)
    }
}
