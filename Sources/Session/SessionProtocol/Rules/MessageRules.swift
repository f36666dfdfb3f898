import WakuCrypto

/// Which reports of storage servers become notifications.
package enum MessageRules {
    /// Why a well-formed report is dropped: the reason that is counted.
    package enum Drop: String, Error, Hashable, Sendable, CaseIterable {
        /// The connection was not asked to monitor the account.
        case unsolicited
        /// `z` has passed.
        case expired
        /// No subscription of the account wants this namespace.
        case unwanted
    }

    /// - Parameters:
    ///   - message: A report.
    ///   - isMonitored: Whether the connection was asked for this account, and has not refused it.
    ///   - now: Unix milliseconds.
    /// - Throws: ``Drop/unsolicited``, ``Drop/expired``
    package static func admit(_ message: NotifyMessage, isMonitored: Bool, at now: Int64) throws(Drop) {
        guard isMonitored else { throw .unsolicited }
        guard message.expiresAt > now else { throw .expired }
    }

    /// When the notifications of a message are given up: at the age limit, which counts from its arrival since `t` is the sender's clock, and never
    /// after `z`.
    ///
    /// - Parameters:
    ///   - message: A report.
    ///   - receivedAt: Unix milliseconds.
    ///   - ageLimit: Milliseconds.
    /// - Returns: Unix milliseconds.
    package static func expiry(of message: NotifyMessage, receivedAt: Int64, ageLimit: Int64) -> Int64 {
        let (limit, isOverflow) = receivedAt.addingReportingOverflow(ageLimit)
        return isOverflow ? message.expiresAt : min(limit, message.expiresAt)
    }

    /// Whether a subscription is notified of a message.
    ///
    /// - Parameters:
    ///   - namespaces: The subscription's, ascending.
    ///   - namespace: The message's.
    package static func wants(_ namespaces: [Int16], _ namespace: Int16) -> Bool {
        namespaces.contains(namespace)
    }

    /// The name of a delivery: SHA-256(name of the subscription's row ‖ hash of the message). A second report of the same message has the
    /// same name.
    ///
    /// - Parameters:
    ///   - rowName: Names the subscription.
    ///   - hash: The message's.
    /// - Returns: 32 bytes.
    package static func deliveryName(rowName: [UInt8], hash: String) -> [UInt8] {
        SHA256.hash(rowName, Array(hash.utf8))
    }
}
