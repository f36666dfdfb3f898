import Primitives
import Synchronization
import Waku

/// What came in and waits to be taken, bounded: who brings more than there is room for waits, and so slows the peer that sends.
final class Inbox: Sendable {
    private struct State {
        var messages: [ReceivedMessage] = []
        var byteCount = 0
        /// Taken, and not done with.
        var isBusy = false
        var isClosed = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let limit: Int
    private let state = Mutex(State())
    private let added = WakeUpSignal()

    /// - Parameter limit: In bytes of payload; one batch more than that may wait for each peer.
    init(limit: Int) {
        self.limit = limit
    }

    /// Whether all that came was taken and is done with. Never again once nobody takes any more.
    var isEmpty: Bool { state.withLock { $0.messages.isEmpty && !$0.isBusy && !$0.isClosed } }

    /// Returns when there is room for more. What comes when nobody takes any more is dropped.
    func append(_ messages: [ReceivedMessage]) async {
        guard !messages.isEmpty else { return }
        let isFull = state.withLock { state in
            guard !state.isClosed else { return false }
            state.messages += messages
            state.byteCount += messages.reduce(0) { $0 + $1.message.payload.count + 100 }
            return state.byteCount > limit
        }
        added.signal()
        if isFull { await waitForRoom() }
    }

    private func waitForRoom() async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                guard state.byteCount > limit, !state.isClosed else { return false }
                state.waiters.append(continuation)
                return true
            }
            if !mustWait { continuation.resume() }
        }
    }

    /// Takes what comes, all that waits at once, until the task is cancelled. One at a time.
    func forEachBatch(_ body: ([ReceivedMessage]) async -> Void) async {
        for await _ in added {
            let (batch, waiters) = state.withLock { state in
                defer {
                    state.messages = []
                    state.byteCount = 0
                    state.waiters = []
                    state.isBusy = true
                }
                return (state.messages, state.waiters)
            }
            if !batch.isEmpty { await body(batch) }
            state.withLock { $0.isBusy = false }
            // Only now: what comes while a batch is being handed over fills the room again.
            for waiter in waiters { waiter.resume() }
        }
        let waiters = state.withLock { state in
            state.isClosed = true
            defer {
                state.messages = []
                state.waiters = []
            }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
