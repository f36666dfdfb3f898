import NodeAPI
import NodeMetrics
import Core
import Waku

/// Passes messages from the relay to the protocols that listen on their topics: a look-up on 4 bytes, before anything is decrypted.
struct MessageSorter: Sendable {
    private let protocols: [(label: ProtocolLabel, topics: any WakuTopics, receiver: any WakuReceiver)]
    private let seen: SeenMessages
    private let handled: HandledMessages
    private let cluster: any ClusterMembership
    private let counters: Counters
    private let now: @Sendable () -> Timestamp

    init(
        _ protocols: [(label: ProtocolLabel, topics: any WakuTopics, receiver: any WakuReceiver)], seen: SeenMessages,
        handled: HandledMessages, cluster: any ClusterMembership, counters: Counters, now: @escaping @Sendable () -> Timestamp
    ) {
        self.protocols = protocols
        self.seen = seen
        self.handled = handled
        self.cluster = cluster
        self.counters = counters
        self.now = now
    }

    /// Returns when all messages of the batch have been submitted to the store, or wait for topic keys.
    func take(_ batch: [ReceivedMessage]) async {
        counters.received(batch.count)
        let messages = sort(batch)
        await deliver(cluster.hear(messages))
    }

    /// Hands messages to the protocols, by their places.
    func deliver(_ arrivals: [(place: Int, incoming: Incoming)]) async {
        for index in protocols.indices {
            let incoming = arrivals.compactMap { $0.place == index ? $0.incoming : nil }
            if !incoming.isEmpty { await protocols[index].receiver.take(incoming) }
        }
    }

    /// The messages for the protocols that listen on their topics.
    private func sort(_ batch: [ReceivedMessage]) -> [(hash: MessageHash, arrivals: [(place: Int, incoming: Incoming)])] {
        let clock = now()
        let instant = ContinuousClock.now
        var sorted: [(hash: MessageHash, arrivals: [(place: Int, incoming: Incoming)])] = []
        var foreign = 0
        for received in batch {
            let tag = received.message.contentTopic.listeningTag
            guard let first = protocols.firstIndex(where: { $0.topics.contains(tag) }) else {
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
            let arrivals = protocols.indices.dropFirst(first).compactMap { index -> (place: Int, incoming: Incoming)? in
                guard index == first || protocols[index].topics.contains(tag) else { return nil }
                let label = protocols[index].label
                let trace = counters.tracer?.begin(label, received: instant, byteCount: received.message.payload.count)
                let times = MessageTimes(received: instant, delay: delay, protocol: label, trace: trace)
                return (index, Incoming(received: received, hash: hash, tag: tag, times: times))
            }
            sorted.append((hash, arrivals))
        }
        counters.add(.foreign, foreign)
        counters.add(.ours, batch.count - foreign)
        return sorted
    }
}
