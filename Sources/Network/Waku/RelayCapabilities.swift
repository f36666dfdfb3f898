/// A relay that can report when messages on content topics start to arrive: light clients, for which a node must accept a subscription first.
///
/// Other relays deliver all messages on their pubsub topics while their `state` is ``RelayState/attached``.
public protocol ConfirmingRelay: Relay {
    /// Returns once all messages on these topics that are published from then on will be delivered.
    func confirmWatching(_ contentTopics: [ContentTopic]) async throws(RelayError)
}

/// A relay with a store to read.
public protocol StoreReadingRelay: Relay {
    /// Reads one page of the stored messages.
    ///
    /// - Throws: ``RelayError``, with `refused` when there is no store.
    func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage
}

extension RelaySet: ConfirmingRelay, StoreReadingRelay {
    /// Returns when the first relay confirms: a message that reaches any of the relays is delivered.
    public func confirmWatching(_ contentTopics: [ContentTopic]) async throws(RelayError) {
        let outcome = await withTaskGroup(of: RelayError?.self) { group -> RelayError? in
            for relay in relays {
                group.addTask {
                    do throws(RelayError) {
                        try await relay.waitUntilWatching(contentTopics)
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            defer { group.cancelAll() }
            var last = RelayError(code: .unavailable, message: "no relay is configured")
            for await error in group {
                guard let error else { return nil }
                last = error
            }
            return last
        }
        if let outcome { throw outcome }
    }

    /// Reads a page from the first relay whose store answers. The next page may come from another one.
    ///
    /// - Throws: ``RelayError`` of a relay, `unavailable` rather than `refused`.
    public func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage {
        var failures: [RelayError] = []
        for relay in relays {
            guard let relay = relay as? any StoreReadingRelay else { continue }
            do throws(RelayError) {
                return try await relay.storePage(query)
            } catch {
                failures.append(error)
            }
        }
        // A store that may answer later makes another attempt worthwhile.
        throw failures.first { $0.code == .unavailable } ?? failures.first
            ?? RelayError(code: .refused, message: "no relay has a store")
    }
}

extension Relay {
    /// Returns once messages on these topics are received: when the relay confirms it, or as soon as it is attached.
    ///
    /// - Throws: ``RelayError``: `unavailable` after 10 s, or the relay's error.
    public func waitUntilWatching(_ contentTopics: [ContentTopic]) async throws(RelayError) {
        watch(contentTopics)
        if let relay = self as? any ConfirmingRelay { return try await relay.confirmWatching(contentTopics) }
        try await waitUntilAttached()
    }

    /// Returns once the relay is attached.
    ///
    /// - Throws: ``RelayError`` with `unavailable` after 10 s.
    public func waitUntilAttached() async throws(RelayError) {
        var pause = Duration.milliseconds(10)
        let deadline = ContinuousClock.now + .seconds(10)
        while case .detached(let reason) = state {
            guard ContinuousClock.now < deadline, !Task.isCancelled else { throw RelayError(code: .unavailable, message: reason) }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(500))
        }
    }
}
