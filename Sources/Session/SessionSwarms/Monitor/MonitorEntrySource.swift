package import SessionProtocol

/// Reads the entries of subscriptions at the time of each request, from the store, so that a million of them need no memory.
package protocol MonitorEntrySource: Sendable {
    /// - Parameter ids: A few thousand at most, without duplicates.
    /// - Returns: The entries of the subscriptions that still exist.
    /// - Throws: An error of the store; the caller retries a second later.
    func entries(of ids: [SubscriptionID]) async throws -> [SubscriptionID: MonitorEntry]
}

/// Receives the messages reported by storage servers.
package protocol SessionMessageReceiver: Sendable {
    /// Returns once there is room for more messages, at the latest when these are stored or dropped. Until then it is not called again, and storage
    /// servers that send more are paused.
    ///
    /// - Parameter messages: At most ``MessageQueue/maximumBatchCount``, in the order in which each server reported them. Their account is monitored
    ///   at the server, and they had not expired on arrival. Every server of a swarm reports the same message.
    func take(_ messages: [ReportedMessage]) async

    /// Returns once all received messages are stored or dropped.
    func settle() async
}
