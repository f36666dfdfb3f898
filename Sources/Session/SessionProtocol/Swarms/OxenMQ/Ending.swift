import Synchronization

/// Signals the end of a thread to waiting tasks.
final class Ending: Sendable {
    private enum State {
        case running([CheckedContinuation<Void, Never>])
        case ended
    }

    private let state = Mutex<State>(.running([]))

    func wait() async {
        await withCheckedContinuation { continuation in
            let isEnded = state.withLock { state in
                guard case .running(let waiting) = state else { return true }
                state = .running(waiting + [continuation])
                return false
            }
            if isEnded { continuation.resume() }
        }
    }

    func end() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard case .running(let waiting) = state else { return [] }
            state = .ended
            return waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
