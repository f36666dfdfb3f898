import Synchronization
public import Waku

/// Clients of filter nodes wait until a node has accepted an answer topic before they publish the question. A node that gossips receives all messages
/// as soon as it is attached.
extension P2PRelay: ConfirmingRelay {
    /// Twice the time until nodes have accepted new topics, given their rate limit.
    private static let timeout = Duration.seconds(20)

    /// Adds content topics to those of ``Configuration/contentTopics``. No effect on a node that gossips, which receives all topics.
    public func watch(_ contentTopics: [ContentTopic]) {
        guard isFilterClient else { return }
        lockedState.withLock { $0.watch(contentTopics) }
    }

    /// Removes content topics added by ``watch(_:)``. Filter nodes get an unsubscribe request once there are many of them, or when there is no room
    /// for others.
    public func unwatch(_ contentTopics: [ContentTopic]) {
        guard isFilterClient else { return }
        lockedState.withLock { $0.unwatch(contentTopics) }
    }

    /// Adds content topics, and returns once a filter node accepted them all, apart from those over its limit of 1,000, of which the latest are watched;
    /// for a node that gossips, once it is attached.
    ///
    /// - Throws: `RelayError`: `unavailable` after 20 s, or after 10 s for a node that gossips; at once after ``close()``.
    public func confirmWatching(_ contentTopics: [ContentTopic]) async throws(RelayError) {
        try checkOpen()
        watch(contentTopics)
        guard isFilterClient else { return try await waitUntilAttached() }
        let deadline = ContinuousClock.now + Self.timeout
        while !lockedState.withLock({ $0.isWatching(contentTopics) }) {
            guard ContinuousClock.now < deadline, !Task.isCancelled else {
                var reason = "no filter node accepted the topic of the answer"
                if case .detached(let text) = state { reason = text }
                throw RelayError(code: .unavailable, message: reason)
            }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }
}
