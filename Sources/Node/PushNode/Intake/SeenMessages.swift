import Core
import Synchronization
import Waku

/// The hashes of messages that were handled already: relays deliver messages more than once, and return messages that were published through them.
///
/// Bounded: at least the last `capacity` hashes are kept, at most twice as many, each as a 64-bit hash that is seeded anew in each process.
final class SeenMessages: Sendable {
    private let hashes: Mutex<GenerationalCache<Int, Void>>

    init(capacity: Int = 100_000) {
        hashes = Mutex(GenerationalCache(capacity: capacity))
    }

    /// - Returns: false if it was present already.
    func insert(_ hash: MessageHash) -> Bool {
        hashes.withLock { $0.insert(hash.hashValue) }
    }
}
