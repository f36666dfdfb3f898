package import SessionProtocol

/// Reads the entries of subscriptions when storage servers are asked to monitor them: the store, so that a million of them need no memory.
package protocol MonitorEntrySource: Sendable {
    /// - Parameter ids: A few thousand at most, each once.
    /// - Returns: The entries of those that still exist.
    /// - Throws: What keeps the store from being read: it is asked again a second later.
    func entries(of ids: [SubscriptionID]) async throws -> [SubscriptionID: MonitorEntry]
}

/// Takes what storage servers report.
package protocol SessionMessageReceiver: Sendable {
    /// Returns once there is room for others, at the latest when the messages are stored or dropped: until then this is not called again, and storage
    /// servers that send more are not read.
    ///
    /// - Parameter messages: At most ``MessageQueue/maximumBatchCount``, in the order in which each server reported them. Their account is monitored at the server, and they had
    ///   not expired when they arrived. The same message comes from every server of its swarm.
    func take(_ messages: [ReportedMessage]) async

    /// Returns once all messages that were taken are stored or dropped.
    func settle() async
}
