import Synchronization
import Waku

/// Which messages were handled already, by hash: relays repeat what they bring, and bring back what was published through them.
///
/// Bounded: two generations of `capacity` each; the older one goes when the younger is full.
final class SeenMessages: Sendable {
    private struct Generations {
        var young: Set<MessageHash> = []
        var old: Set<MessageHash> = []
    }

    private let generations = Mutex(Generations())
    private let capacity: Int

    init(capacity: Int = 100_000) {
        self.capacity = capacity
    }

    /// False when it was there already.
    func insert(_ hash: MessageHash) -> Bool {
        generations.withLock { generations in
            guard !generations.young.contains(hash), !generations.old.contains(hash) else { return false }
            if generations.young.count >= capacity { generations = Generations(young: [], old: generations.young) }
            generations.young.insert(hash)
            return true
        }
    }
}
