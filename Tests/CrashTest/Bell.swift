import Synchronization

/// Signals events to current waiters.
final class Bell: Sendable {
    private let listener = Mutex<AsyncStream<Void>.Continuation?>(nil)

    func ring() {
        _ = listener.withLock { $0?.yield() }
    }

    /// Returns after `count` further signals, or after the time limit.
    func wait(for count: Int, limit: Duration) async {
        let (rings, ring) = AsyncStream.makeStream(of: Void.self)
        listener.withLock { $0 = ring }
        let timer = Task {
            try? await Task.sleep(for: limit)
            ring.finish()
        }
        var heard = 0
        for await _ in rings {
            heard += 1
            if heard == count { break }
        }
        timer.cancel()
        listener.withLock { $0 = nil }
    }
}
