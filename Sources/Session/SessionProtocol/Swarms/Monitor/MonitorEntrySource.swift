/// Reads the entries of subscriptions from the store for each request, so that a node with a million subscriptions does not hold them in memory.
package protocol MonitorEntrySource: Sendable {
    /// - Parameter ids: A few thousand at most, without duplicates.
    /// - Returns: The entries, and the subscriptions that have ended. Those among neither can't be read, and are asked for later.
    /// - Throws: An error of the store; the caller retries a second later.
    func entries(of ids: [SubscriptionID]) async throws -> (found: [SubscriptionID: MonitorEntry], ended: [SubscriptionID])
}

/// Receives the messages reported by storage servers.
package protocol SessionMessageReceiver: Sendable {
    /// Returns when there is room for more messages, at the latest when these are stored or dropped. It is not called again before it returns;
    /// storage servers that send more are paused meanwhile.
    ///
    /// - Parameter messages: At most ``MessageQueue/maximumBatchCount``, in the order in which each server reported them. Their account is monitored
    ///   at the server, and they had not expired on arrival. Every server of a swarm reports the same message.
    func take(_ messages: [ReportedMessage]) async

    /// Returns once all received messages are stored or dropped.
    func settle() async
}
