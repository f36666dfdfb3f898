import Dispatch
import Synchronization

// A correct program: the value of a continuation is used after it was given, here before the task suspends. The thread sanitizer reports a race in it,
// unless runtime-edges.c is preloaded.
for number in 0..<200 {
    let values = await withUnsafeContinuation { (continuation: UnsafeContinuation<[Int], Never>) in
        let isResumed = Atomic<Bool>(false)
        DispatchQueue.global().async {
            continuation.resume(returning: [number, number + 1])
            isResumed.store(true, ordering: .relaxed)
        }
        while !isResumed.load(ordering: .relaxed) {}
    }
    if values[0] == -1 { print(values) }
}
