package import SessionProtocol

/// What is counted of storage servers.
package enum MonitorEvent: Hashable, Sendable {
    /// A message was accepted, and is handed to the receiver.
    case received
    /// A message of a storage server was dropped.
    case dropped(SessionDropReason)
    /// Storage servers were asked to monitor so many subscriptions, renewals included.
    case asked(Int)
    /// A storage server refused to monitor a subscription.
    case refused(MonitorRefusal)
    /// A storage server ended the monitoring of an account, since the account left its swarm.
    case ended
    /// A connection to a storage server was made.
    case connected
    /// A connection to a storage server ended or could not be made.
    case disconnected
}

/// Why a message of a storage server is dropped: `waku_push_session_dropped_total{reason}`.
package enum SessionDropReason: String, Hashable, Sendable, CaseIterable {
    /// No bencoded dictionary with the fields of a report.
    case malformed
    case negativeTime = "negative_time"
    /// The hash is not 32 to 99 characters of printable ASCII.
    case badHash = "bad_hash"
    case tooLarge = "too_large"
    /// The connection was not asked to monitor the account, or has refused.
    case unsolicited
    case expired
    /// No subscription of the account wants this namespace: counted by the receiver.
    case unwanted
    /// A command other than `notify.message` and `notify.monitor_ended`.
    case unknownCommand = "unknown_command"
    /// A reply to a request that this connection was not sent, or that was answered before.
    case unknownReply = "unknown_reply"
    /// Not a message of oxenmq.
    case notOxenMQ = "not_oxenmq"

    package init(_ defect: NotifyMessage.Defect) {
        switch defect {
        case .malformed: self = .malformed
        case .negativeTime: self = .negativeTime
        case .badHash: self = .badHash
        case .tooLarge: self = .tooLarge
        }
    }
}
