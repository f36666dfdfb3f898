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

    /// The name of a delivery: SHA-256(name of the subscription's row ‖ hash of the message). Equal for a second report of the same message.
    ///
    /// - Returns: 32 bytes.
    package static func deliveryName(rowName: [UInt8], hash: String) -> [UInt8] {
        SHA256.hash(rowName, Array(hash.utf8))
    }
}
