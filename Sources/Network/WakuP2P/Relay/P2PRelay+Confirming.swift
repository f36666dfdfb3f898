import Synchronization
public import Waku

/// Clients of filter nodes wait until a node has accepted an answer topic before they publish the question. A relay gets all messages as
/// soon as it is attached.
extension P2PRelay: ConfirmingRelay {
    /// Twice the time in which nodes, within their rate limit, notice and accept new topics.
    private static let timeout = Duration.seconds(20)

    /// Adds content topics to those of ``Configuration/contentTopics``. A relay receives all of them anyway.
    public func watch(_ contentTopics: [ContentTopic]) {
        guard isFilterClient else { return }
        lockedState.withLock { $0.watch(contentTopics) }
    }

    /// Filter nodes get an unsubscribe request once there are many such topics, or when they have no room for others.
    public func unwatch(_ contentTopics: [ContentTopic]) {
        guard isFilterClient else { return }
        lockedState.withLock { $0.unwatch(contentTopics) }
    }

    public func confirmWatching(_ contentTopics: [ContentTopic]) async throws(RelayError) {
        watch(contentTopics)
        guard isFilterClient else { return try await waitUntilAttached() }
        let deadline = ContinuousClock.now + Self.timeout
        while !lockedState.withLock({ $0.filterPeers.areAccepted(contentTopics) }) {
            guard ContinuousClock.now < deadline, !Task.isCancelled else {
                var reason = "no filter node accepted the topic of the answer"
                if case .detached(let text) = state { reason = text }
                throw RelayError(code: .unavailable, message: reason)
            }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }
}
