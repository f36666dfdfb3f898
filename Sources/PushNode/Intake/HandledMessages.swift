import Synchronization
package import Waku

/// Messages of ours that need no second look: answered, as far as they get an answer, or dropped for good. They are written down soon after, and
/// along with the relay's cursors, so that a restart, which looks at the last minute again, answers nothing twice.
///
/// What waits for its answer, was shed, or is a segment of something incomplete is not among them.
package final class HandledMessages: Sendable {
    /// Between two times that they are written down. Beyond it some are looked at again after a restart.
    private static let capacity = 50_000

    private let unsaved = Mutex<[MessageHash]>([])
    /// An element when there is something to write down that was not announced yet.
    let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    init() {
        (arrivals, arrival) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    package func note(_ hash: MessageHash) {
        let isFirst = unsaved.withLock { hashes in
            if hashes.count < Self.capacity { hashes.append(hash) }
            return hashes.count == 1
        }
        if isFirst { arrival.yield() }
    }

    /// Those that were not written down yet.
    func take() -> [MessageHash] {
        unsaved.withLock { hashes in
            defer { hashes = [] }
            return hashes
        }
    }

    /// They could not be written down.
    func putBack(_ hashes: [MessageHash]) {
        unsaved.withLock { $0 = Array((hashes + $0).prefix(Self.capacity)) }
    }
}
