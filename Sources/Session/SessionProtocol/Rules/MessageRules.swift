import WakuCrypto

/// Decides which reports of storage servers become notifications.
package enum MessageRules {
    /// - Parameters:
    ///   - isMonitored: Whether the connection was asked to monitor this account, and has not refused.
    ///   - now: Unix milliseconds.
    /// - Throws: ``SessionDropReason/unsolicited``, ``SessionDropReason/expired``
    package static func admit(_ message: NotifyMessage, isMonitored: Bool, at now: Int64) throws(SessionDropReason) {
        guard isMonitored else { throw .unsolicited }
        guard message.expiresAt > now else { throw .expired }
    }

    /// The time at which the notifications of a message expire: at the age limit, but never after `z`. The age counts from the arrival, because `t`
    /// depends on the sender's clock.
    ///
    /// - Parameters:
    ///   - receivedAt: Unix milliseconds.
    ///   - ageLimit: Milliseconds.
    /// - Returns: Unix milliseconds.
    package static func expiry(of message: NotifyMessage, receivedAt: Int64, ageLimit: Int64) -> Int64 {
        let (limit, isOverflow) = receivedAt.addingReportingOverflow(ageLimit)
        return isOverflow ? message.expiresAt : min(limit, message.expiresAt)
    }

    /// Whether another server's report of the same message, which arrives a minute earlier or later, may have its ``expiry(of:receivedAt:ageLimit:)`` on
    /// the other side of `z`.
    package static func mayEndOtherwise(_ message: NotifyMessage, receivedAt: Int64, ageLimit: Int64) -> Bool {
        let (limit, isOverflow) = receivedAt.addingReportingOverflow(ageLimit)
        return !isOverflow && max(limit, message.expiresAt) - min(limit, message.expiresAt) <= 60_000
    }

    /// The name of a delivery. Equal for a second report of the same message.
    ///
    ///     SHA-256(name of the subscription's row ‖ hash of the message ‖ end(8, big-endian), if there is one)
    ///
    /// The hash does not cover `z`. A report whose `z` ends the delivery before the age limit does has a name of its own: otherwise one server of
    /// the swarm, with a `z` that is near, would suppress the reports of all others.
    ///
    /// - Parameter end: `z`, if it is not after ``expiry(of:receivedAt:ageLimit:)``.
    /// - Returns: 32 bytes.
    package static func deliveryName(rowName: [UInt8], hash: String, end: Int64? = nil) -> [UInt8] {
        SHA256.hash(rowName, Array(hash.utf8) + (end.map { withUnsafeBytes(of: $0.bigEndian, Array.init) } ?? []))
    }
}
