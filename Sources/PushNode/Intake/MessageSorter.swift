import NodeMetrics
import Waku

/// Passes messages from the relay to the protocols that listen on their topics: a look-up on 4 bytes, before anything is decrypted.
struct MessageSorter: Sendable {
    private let protocols: [(label: ProtocolLabel, topics: any WakuTopics, receiver: any WakuReceiver)]
    private let seen: SeenMessages
    private let handled: HandledMessages
    private let counters: Counters
    private let now: @Sendable () -> Timestamp

    init(
        _ protocols: [(label: ProtocolLabel, topics: any WakuTopics, receiver: any WakuReceiver)], seen: SeenMessages,
        handled: HandledMessages,
        counters: Counters, now: @escaping @Sendable () -> Timestamp
    ) {
        self.protocols = protocols
        self.seen = seen
        self.handled = handled
        self.counters = counters
        self.now = now
    }

    /// Returns when all messages of the batch have been submitted to the store, or wait for topic keys.
    func take(_ batch: [ReceivedMessage]) async {
        counters.received(batch.count)
        for (index, incoming) in sort(batch).enumerated() where !incoming.isEmpty {
            await protocols[index].receiver.take(incoming)
        }
    }

    /// The messages for each protocol.
    private func sort(_ batch: [ReceivedMessage]) -> [[Incoming]] {
        let clock = now()
        let instant = ContinuousClock.now
        var sorted: [[Incoming]] = protocols.map { _ in [] }
        var foreign = 0
        for received in batch {
            guard let tag = received.message.contentTopic.tag, let first = protocols.firstIndex(where: { $0.topics.contains(tag) }) else {
                foreign += 1
                continue
            }
            let hash = received.hash
            guard received.message.flaw == nil else {
                counters.add(.droppedOversized)
                handled.note(hash)
                continue
            }
            guard seen.insert(hash) else {
                counters.add(.duplicate)
                continue
            }
            let timestamp = received.message.timestamp
            let delay = timestamp.rawValue > 0 ? max(.zero, clock.since(timestamp)) : nil
            // Topics are 4 bytes of a hash, so two protocols may listen on the same.
            for index in protocols.indices.dropFirst(first) where index == first || protocols[index].topics.contains(tag) {
                let times = MessageTimes(received: instant, delay: delay, protocol: protocols[index].label)
                sorted[index].append(Incoming(received: received, hash: hash, tag: tag, times: times))
            }
        }
        counters.add(.foreign, foreign)
        counters.add(.ours, batch.count - foreign)
        return sorted
    }
}
