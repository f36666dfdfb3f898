import Core
import Synchronization
import Waku

/// Limits the cursors that are stored to the last message that the node heard: a relay that is attached, but cut off from the network, looks like one on
/// a quiet shard. The catch-up of a later start then begins there; on a quiet shard it finds nothing in this time.
final class HeardMessages: Sendable {
    /// The cursors at the start.
    private let stored: [PubsubTopic: Timestamp]
    private let startedAt: Timestamp
    /// In nanoseconds since 1970.
    private let heardUntil = Atomic(Int64.min)

    init(after stored: [PubsubTopic: Timestamp], startedAt: Timestamp) {
        self.stored = stored
        self.startedAt = startedAt
    }

    /// Records messages by their own times: one that was found in a store does not show that the relay receives.
    func note(_ messages: [ReceivedMessage], at now: Timestamp) {
        guard let newest = messages.map(\.message.timestamp).max() else { return }
        note(until: min(newest, now))
    }

    func note(until time: Timestamp) {
        heardUntil.max(time.rawValue, ordering: .relaxed)
    }

    /// Returns the cursors, or earlier ones.
    func limit(_ cursors: [PubsubTopic: Timestamp]) -> [PubsubTopic: Timestamp] {
        let heardUntil = Timestamp(rawValue: heardUntil.load(ordering: .relaxed))
        return cursors.reduce(into: [:]) { limited, entry in
            limited[entry.key] = min(entry.value, max(stored[entry.key] ?? startedAt, heardUntil))
        }
    }
}
