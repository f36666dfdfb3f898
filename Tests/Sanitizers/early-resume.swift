import Dispatch
import Synchronization

// A correct program: what a continuation gave is used after it was given, here before the task suspends. The thread sanitizer reports races in it,
// unless runtime-edges.c is preloaded.
final class Gift: @unchecked Sendable {
    var number: Int
    init(_ number: Int) { self.number = number }
}

/// Returns once another thread has called `resume`.
func resumed(_ resume: @escaping @Sendable () -> Void) {
    let isResumed = Atomic<Bool>(false)
    DispatchQueue.global().async {
        resume()
        isResumed.store(true, ordering: .relaxed)
    }
    while !isResumed.load(ordering: .relaxed) {}
}

for number in 0..<200 {
    let first = await withUnsafeContinuation { continuation in resumed { continuation.resume(returning: Gift(number)) } }
    let second = await withCheckedContinuation { continuation in resumed { continuation.resume(returning: Gift(number)) } }
    if first.number + second.number == -1 { print(number) }
}
