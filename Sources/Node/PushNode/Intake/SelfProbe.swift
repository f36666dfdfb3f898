import Synchronization
import Core
import Waku
import WakuCrypto

/// Sends a message to the node itself, to test that published messages come in. The message is ephemeral and removed from the intake here.
final class SelfProbe: Sendable {
    private let topic: ContentTopic
    private let waiting = Mutex<[MessageHash: AsyncStream<Void>.Continuation]>([:])
    private let isWaiting = Atomic(false)

    /// - Parameter topic: one of the node's own topics, so that relays deliver the message.
    init(topic: ContentTopic) {
        self.topic = topic
    }

    /// Returns the time until the message came back; nil after the limit.
    ///
    /// - Throws: ``RelayError`` if it could not be published.
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

    /// Removes awaited messages from a batch, and notifies their waiters.
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
