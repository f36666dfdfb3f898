import Synchronization

/// Rings for whoever listens at the moment.
final class Bell: Sendable {
    private let listener = Mutex<AsyncStream<Void>.Continuation?>(nil)

    func ring() {
        _ = listener.withLock { $0?.yield() }
    }

    /// Returns after so many rings from now on, or when the time has passed.
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
