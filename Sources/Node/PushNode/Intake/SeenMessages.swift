import Core
import Synchronization
import Waku

/// The hashes of messages that were handled already: relays deliver messages more than once, and return messages that were published through them.
///
/// Bounded: at least the last `capacity` hashes are kept, at most twice as many.
final class SeenMessages: Sendable {
    private let hashes: Mutex<GenerationalCache<MessageHash, Void>>

    init(capacity: Int = 100_000) {
        hashes = Mutex(GenerationalCache(capacity: capacity))
    }

    /// - Returns: false if it was present already.
    func insert(_ hash: MessageHash) -> Bool {
        hashes.withLock { $0.insert(hash) }
    }
}
