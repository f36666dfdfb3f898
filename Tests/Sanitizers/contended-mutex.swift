// A correct program. The thread sanitizer reports a race in it, unless runtime-edges.c is preloaded.
import Dispatch
import Synchronization

let numbers = Mutex<[Int]>([])
DispatchQueue.concurrentPerform(iterations: 8) { worker in
    for number in 0..<20_000 {
        numbers.withLock { numbers in
            numbers.append(worker + number)
            if numbers.count > 100 { numbers.removeAll() }
        }
    }
}
