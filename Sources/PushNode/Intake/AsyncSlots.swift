import Synchronization

/// Room for so much at once. Who has to wait is served in order.
final class AsyncSlots: Sendable {
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

    /// Waits for room. More than there is at all waits for everything.
    func take(_ count: Int = 1) async {
        let count = min(count, capacity)
        if takeNow(count) { return }
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

    /// Whether there was room enough, so that `kept` is still free.
    func takeNow(_ count: Int, leaving kept: Int = 0) -> Bool {
        state.withLock { state in
            guard state.waiting.isEmpty, state.free - min(count, capacity) >= kept else { return false }
            state.free -= min(count, capacity)
            return true
        }
    }

    func give(_ count: Int = 1) {
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

    var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }
    var takenCount: Int { state.withLock { capacity - $0.free } }
    var areAllFree: Bool { state.withLock { $0.free == capacity } }
}
