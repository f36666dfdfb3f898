import Storage
import Testing

@Suite("What is known of a store's health")
struct StoreHealthTests {
    private let start = ContinuousClock.now
    private var health = StoreHealth()

    @Test("A commit tells anew each time")
    mutating func commits() {
        #expect(health.failure(at: start) == nil)
        health.committing(at: start)
        health.committed("full")
        #expect(health.failure(at: start) == "full")
        health.committed(nil)
        #expect(health.failure(at: start) == nil)
    }

    @Test("A commit that is on its way for long is told, until it ends")
    mutating func stalled() {
        health.committing(at: start)
        #expect(health.failure(at: start + .seconds(10)) == nil)
        #expect(health.failure(at: start + .seconds(11))?.hasPrefix("the disk has not answered for 11 s") == true)
        health.committedNothing()
        #expect(health.failure(at: start + .seconds(12)) == nil)
    }

    @Test("A failed read counts until a check finds nothing, whatever commits do; checks come with growing pauses")
    mutating func reads() {
        #expect(!health.wantsCheck(at: start + .seconds(10_000)))
        health.readFailed("damaged", at: start)
        health.committed(nil)
        #expect(health.failure(at: start) == "damaged")
        #expect(!health.wantsCheck(at: start + .seconds(4)))
        #expect(health.wantsCheck(at: start + .seconds(5)))
        health.checked("damaged still", at: start + .seconds(5))
        #expect(health.failure(at: start) == "damaged still")
        health.readFailed("damaged", at: start + .seconds(6))
        #expect(!health.wantsCheck(at: start + .seconds(14)))
        #expect(health.wantsCheck(at: start + .seconds(15)))
        for _ in 0..<20 { health.checked("damaged still", at: start) }
        #expect(health.wantsCheck(at: start + .seconds(1800)))
        health.checked(nil, at: start)
        #expect(health.failure(at: start) == nil)
        #expect(!health.wantsCheck(at: start + .seconds(10_000)))
    }

    @Test("A log that can't be moved into the database is told until it can, but what keeps commits from being kept goes first")
    mutating func checkpoints() {
        health.checkpointed("stuck")
        #expect(health.failure(at: start) == "stuck")
        health.committed("full")
        #expect(health.failure(at: start) == "full")
        health.committed(nil)
        health.checkpointed(nil)
        #expect(health.failure(at: start) == nil)
    }
}
