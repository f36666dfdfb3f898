/// Events that are counted.
package enum MonitorEvent: Hashable, Sendable {
    /// A message was accepted for the receiver.
    case received
    /// A message of a storage server was dropped.
    case dropped(SessionDropReason)
    /// Storage servers were asked to monitor this number of subscriptions, renewals included.
    case asked(Int)
    /// A storage server refused to monitor a subscription.
    case refused(MonitorRefusal)
    /// A storage server stopped monitoring an account because the account left its swarm.
    case ended
    /// A connection to a storage server was established.
    case connected
    /// A connection to a storage server failed or ended.
    case disconnected
}

/// The reason why a message of a storage server makes no notification: `waku_push_session_dropped_total{reason}`.
package enum SessionDropReason: String, Error, Hashable, Sendable, CaseIterable {
    /// Not a bencoded dictionary, or a field of a report is missing, has another type or is out of range.
    case malformed
    case negativeTime = "negative_time"
    /// The hash is not 32 to 99 characters of printable ASCII.
    case badHash = "bad_hash"
    case tooLarge = "too_large"
    /// The connection was not asked to monitor the account, or has refused.
    case unsolicited
    /// The time `z` has passed.
    case expired
    /// No subscription of the account wants this namespace. Counted by the receiver.
    case unwanted
    /// A command other than `notify.message` and `notify.monitor_ended`.
    case unknownCommand = "unknown_command"
    /// A reply to a request that was not sent on this connection, or was answered before.
    case unknownReply = "unknown_reply"
    /// Not an oxenmq message.
    case notOxenMQ = "not_oxenmq"
    /// The message waited for longer than `--max-request-age`. Counted by the receiver, as the next.
    case tooOld = "too_old"
    /// The store failed until the node stopped, or failed for this message only because of damaged rows.
    case notStored = "not_stored"
}
