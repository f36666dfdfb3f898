// A wrong program: one of the threads forgets the lock. The thread sanitizer reports the race, with runtime-edges.c preloaded too.
import Dispatch
import Synchronization

final class Shared: @unchecked Sendable {
    let lock = Mutex(())
    var sum = 0
}

let shared = Shared()
DispatchQueue.concurrentPerform(iterations: 8) { worker in
    for number in 0..<20_000 {
        if worker.isMultiple(of: 2) {
            shared.sum += number
        } else {
            shared.lock.withLock { _ in shared.sum += number }
        }
    }
}
