import Dispatch
import Core
import Synchronization

/// A timer that calls a handler on a queue at the earliest of the times set.
final class Alarm: Sendable {
    private let queue: DispatchQueue
    private let armedAt = Mutex<Instant?>(nil)

    init(on queue: DispatchQueue) {
        self.queue = queue
    }

    /// - Parameters:
    ///   - time: When to call the handler. Ignored if nil, or later than the time already set, unless that one has passed without a call: the timers
    ///     of the queue stand still while the machine sleeps.
    ///   - handler: Must be the same in every call. Sets the alarm again if needed.
    func set(to time: Instant?, _ handler: @escaping @Sendable () -> Void) {
        guard let time else { return }
        let isEarliest = armedAt.withLock { armedAt in
            if let armedAt, armedAt <= time, armedAt > Instant.now - .seconds(1) { return false }
            armedAt = time
            return true
        }
        guard isEarliest else { return }
        let delay = max(time - .now, .zero)
        // Rounded up, because nothing would be due if the handler ran slightly early.
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(delay / .milliseconds(1)) + 1)) { [weak self] in
            guard let self, self.disarm(time) else { return }
            handler()
        }
    }

    /// - Returns: false if the alarm has been set to an earlier time since.
    private func disarm(_ time: Instant) -> Bool {
        armedAt.withLock { armedAt in
            guard armedAt == time else { return false }
            armedAt = nil
            return true
        }
    }
}
