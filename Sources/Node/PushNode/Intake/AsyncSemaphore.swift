import Synchronization

/// A counting semaphore for tasks. Waiting tasks are served in order.
final class AsyncSemaphore: Sendable {
    private struct State {
        var free: Int
        var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    let capacity: Int
    private let state: Mutex<State>

    init(_ capacity: Int) {
        self.capacity = capacity
        state = Mutex(State(free: capacity))
    }

    /// Acquires units, and waits until they are free. A count above ``capacity`` acquires all.
    func acquire(_ count: Int = 1) async {
        let count = min(count, capacity)
        if tryAcquire(count) { return }
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.waiting.isEmpty, state.free >= count else {
                    state.waiting.append((count, continuation))
                    return false
                }
                state.free -= count
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    /// Acquires units if at least `reserve` others remain free and no task waits.
    ///
    /// - Parameter reserve: the number of units that must remain free.
    /// - Returns: whether the units were acquired.
    func tryAcquire(_ count: Int, leaving reserve: Int = 0) -> Bool {
        state.withLock { state in
            guard state.waiting.isEmpty, state.free - min(count, capacity) >= reserve else { return false }
            state.free -= min(count, capacity)
            return true
        }
    }

    func release(_ count: Int = 1) {
        let next = state.withLock { state in
            state.free += min(count, capacity)
            var next: [CheckedContinuation<Void, Never>] = []
            while let first = state.waiting.first, first.count <= state.free {
                state.free -= first.count
                next.append(state.waiting.removeFirst().continuation)
            }
            return next
        }
        for continuation in next { continuation.resume() }
    }

    var hasWaiters: Bool { state.withLock { !$0.waiting.isEmpty } }
    var acquiredCount: Int { state.withLock { capacity - $0.free } }
    var isUnused: Bool { state.withLock { $0.free == capacity } }
}
