package import Core
import Synchronization
package import Waku

/// Messages on the node's own topics that were handled completely: answered, if they get an answer, or dropped for good. They are stored soon after,
/// and along with the relay's cursors, so that the catch-up after a restart, which overlaps by a minute, answers no message twice.
///
/// Not included are messages that wait for their answer, messages that were shed, and segments of incomplete messages.
package final class HandledMessages: Sendable {
    /// The number of unsaved hashes. Messages beyond it are handled again after a restart.
    private static let capacity = 50_000

    private let unsaved = Mutex<[MessageHash]>([])
    private let observer: (@Sendable (MessageHash) -> Void)?
    /// Signals that there are unsaved hashes, after there were none.
    package let wakeUp = WakeUpSignal()

    package init(observer: (@Sendable (MessageHash) -> Void)? = nil) {
        self.observer = observer
    }

    package func note(_ hash: MessageHash) {
        observer?(hash)
        let isFirst = unsaved.withLock { hashes in
            if hashes.count < Self.capacity { hashes.append(hash) }
            return hashes.count == 1
        }
        if isFirst { wakeUp.signal() }
    }

    /// Takes the hashes that are not stored yet.
    package func take() -> [MessageHash] {
        unsaved.withLock { hashes in
            defer { hashes = [] }
            return hashes
        }
    }

    /// Returns hashes that could not be stored.
    package func putBack(_ hashes: [MessageHash]) {
        unsaved.withLock { $0 = Array((hashes + $0).prefix(Self.capacity)) }
    }
}
