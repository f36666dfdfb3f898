import Synchronization
import Waku
import WakuCrypto

/// A message that the node sends to itself, to see that what is published comes in. No store keeps it, and it goes no further than here.
final class SelfProbe: Sendable {
    private let topic: ContentTopic
    private let waiting = Mutex<[MessageHash: AsyncStream<Void>.Continuation]>([:])
    private let isWaiting = Atomic(false)

    /// - Parameter topic: one of the node's own, so that relays hand over what comes on it.
    init(topic: ContentTopic) {
        self.topic = topic
    }

    /// How long it took to come back; nil when it did not in time.
    ///
    /// - Throws: ``RelayError`` when it was not published.
    func run(by relay: any Relay, on pubsubTopic: PubsubTopic, limit: Duration) async throws(RelayError) -> Duration? {
        let message = WakuMessage(payload: randomBytes(64), contentTopic: topic, version: 1, timestamp: .now(), ephemeral: true)
        let hash = message.hash(on: pubsubTopic)
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        waiting.withLock { waiting in
            waiting[hash] = arrival
            isWaiting.store(true, ordering: .relaxed)
        }
        defer {
            waiting.withLock { waiting in
                waiting[hash] = nil
                isWaiting.store(!waiting.isEmpty, ordering: .relaxed)
            }
        }
        let start = ContinuousClock.now
        try await relay.publish(message, on: pubsubTopic)
        let timer = Task {
            try? await Task.sleep(for: limit)
            arrival.finish()
        }
        defer { timer.cancel() }
        for await _ in arrivals { return start.duration(to: .now) }
        return nil
    }

    /// What came in, but for what is waited for here.
    func take(_ batch: [ReceivedMessage]) -> [ReceivedMessage] {
        guard isWaiting.load(ordering: .relaxed) else { return batch }
        return batch.filter { received in
            guard received.message.contentTopic == topic else { return true }
            let arrival = waiting.withLock { $0[received.hash] }
            arrival?.yield()
            return arrival == nil
        }
    }
}
