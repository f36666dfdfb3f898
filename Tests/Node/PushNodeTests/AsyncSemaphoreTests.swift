import Testing

@testable import PushNode

@Suite("Counting semaphore for tasks")
struct AsyncSemaphoreTests {
    @Test("tryAcquire leaves the reserve free")
    func reserve() {
        let semaphore = AsyncSemaphore(10)
        #expect(semaphore.tryAcquire(6, leaving: 4))
        #expect(!semaphore.tryAcquire(1, leaving: 4))
        #expect(semaphore.tryAcquire(3, leaving: 1))
        #expect(semaphore.tryAcquire(1))
        #expect(!semaphore.tryAcquire(1))
        semaphore.release(10)
        #expect(semaphore.isUnused)
    }

    @Test("Waiting tasks are served in order, and later ones do not overtake them")
    func order() async {
        let semaphore = AsyncSemaphore(4)
        await semaphore.acquire(4)
        async let large: Void = semaphore.acquire(3)
        while !semaphore.hasWaiters { await Task.yield() }
        semaphore.release(2)
        #expect(!semaphore.tryAcquire(1), "a task waits")
        semaphore.release(2)
        await large
        #expect(semaphore.tryAcquire(1))
        #expect(!semaphore.tryAcquire(1))
    }

    @Test("A count above the capacity acquires all units")
    func tooMuch() async {
        let semaphore = AsyncSemaphore(4)
        await semaphore.acquire(100)
        #expect(!semaphore.tryAcquire(1))
        semaphore.release(100)
        #expect(semaphore.isUnused)
    }
}
