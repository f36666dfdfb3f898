import Core
import Synchronization
import Waku

/// A bounded queue of received messages. Producers wait while it is full, which slows down the peers that send.
final class Inbox: Sendable {
    private struct State {
        var messages: [ReceivedMessage] = []
        var byteCount = 0
        /// Whether a batch is being delivered.
        var isBusy = false
        var isClosed = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let limit: Int
    private let state = Mutex(State())
    private let added = WakeUpSignal()

    /// - Parameter limit: In bytes of payload. It may be exceeded by one batch per peer.
    init(limit: Int) {
        self.limit = limit
    }

    /// Whether all messages were delivered. False once the consumer ended, until ``reopen()``.
    var isEmpty: Bool { state.withLock { $0.messages.isEmpty && !$0.isBusy && !$0.isClosed } }

    /// Takes messages again after the consumer ended, for the next one.
    ///
    /// - Returns: false when it had not ended.
    func reopen() -> Bool {
        state.withLock { state in
            defer { state.isClosed = false }
            return state.isClosed
        }
    }

    /// Adds messages, and waits until there is room for more. Messages are dropped once the consumer ended.
    func append(_ messages: [ReceivedMessage]) async {
        if add(messages) { await waitForRoom() }
    }

    /// - Returns: Whether the producer must wait for room before it adds more.
    func add(_ messages: [ReceivedMessage]) -> Bool {
        guard !messages.isEmpty else { return false }
        let isFull = state.withLock { state in
            guard !state.isClosed else { return false }
            state.messages += messages
            state.byteCount += messages.reduce(0) { $0 + $1.message.payload.count + 100 }
            return state.byteCount > limit
        }
        added.signal()
        return isFull
    }

    func waitForRoom() async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                guard state.byteCount > limit, !state.isClosed else { return false }
                state.waiters.append(continuation)
                return true
            }
            if !mustWait { continuation.resume() }
        }
    }

    /// Calls `body` with all queued messages at a time, until the task is cancelled. Runs once at a time.
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
            // Only now, so that at most one further batch is queued during a delivery.
            for waiter in waiters { waiter.resume() }
        }
        let waiters = state.withLock { state in
            state.isClosed = true
            defer {
                state.messages = []
                state.byteCount = 0
                state.waiters = []
            }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
