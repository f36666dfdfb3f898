import Dispatch
import Core
import Synchronization

/// Has something done on a queue at the earliest of the times that it is set to.
final class Alarm: Sendable {
    private let queue: DispatchQueue
    private let armedAt = Mutex<Instant?>(nil)

    init(on queue: DispatchQueue) {
        self.queue = queue
    }

    /// - Parameters:
    ///   - time: nil, or later than the time that it is set to already, changes nothing.
    ///   - handler: Sets the alarm again when there is more to come. The same every time.
    func set(to time: Instant?, _ handler: @escaping @Sendable () -> Void) {
        guard let time else { return }
        let isEarliest = armedAt.withLock { armedAt in
            if let armedAt, armedAt <= time { return false }
            armedAt = time
            return true
        }
        guard isEarliest else { return }
        let delay = max(time - .now, .zero)
        // Rounded up: a moment too early, nothing would be due.
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(delay / .milliseconds(1)) + 1)) { [weak self] in
            guard let self, self.disarm(time) else { return }
            handler()
        }
    }

    /// - Returns: false when it was set to an earlier time since.
    private func disarm(_ time: Instant) -> Bool {
        armedAt.withLock { armedAt in
            guard armedAt == time else { return false }
            armedAt = nil
            return true
        }
    }
}
