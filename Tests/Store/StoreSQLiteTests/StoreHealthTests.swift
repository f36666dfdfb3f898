import Storage
import Testing

@Suite("Store health")
struct StoreHealthTests {
    private let start = ContinuousClock.now
    private var health = StoreHealth()

    @Test("Each commit replaces the result of the previous one")
    mutating func commits() {
        #expect(health.failure(at: start) == nil)
        health.committing(at: start)
        health.committed("full")
        #expect(health.failure(at: start) == "full")
        health.committed(nil)
        #expect(health.failure(at: start) == nil)
    }

    @Test("A full disk is reported until a test finds space, however long no other commit fails")
    mutating func full() {
        let full = StoreError(code: .full, message: "full")
        #expect(!health.wantsSpaceTest(at: start + .seconds(3600)))
        health.note(.committed(failure: full), at: start)
        health.note(.committed(failure: nil), at: start + .seconds(1))
        #expect(health.failure(at: start + .seconds(3600)) == "full")
        // Other nodes that share the database have no more space.
        #expect(health.outage(at: start + .seconds(1)) == nil)
        #expect(!health.wantsSpaceTest(at: start + .seconds(9)))
        #expect(health.wantsSpaceTest(at: start + .seconds(10)))
        // A commit that fails during the test refutes it.
        health.note(.committed(failure: full), at: start + .seconds(12))
        health.note(.committed(failure: nil), at: start + .seconds(13))
        health.foundSpace(since: start + .seconds(11))
        #expect(health.failure(at: start + .seconds(3600)) == "full")
        #expect(!health.wantsSpaceTest(at: start + .seconds(21)))
        #expect(health.wantsSpaceTest(at: start + .seconds(22)))
        health.foundSpace(since: start + .seconds(22))
        #expect(health.failure(at: start + .seconds(23)) == nil)
        #expect(!health.wantsSpaceTest(at: start + .seconds(3600)))
    }

    @Test("Other failures of commits end with the next commit")
    mutating func otherFailures() {
        health.note(.committed(failure: StoreError(code: .unavailable, message: "locked")), at: start)
        #expect(health.failure(at: start) == "locked" && health.outage(at: start) == "locked")
        #expect(!health.wantsSpaceTest(at: start + .seconds(3600)))
        health.note(.committed(failure: nil), at: start)
        #expect(health.failure(at: start) == nil)
    }

    @Test("A commit in progress for too long is reported until it ends")
    mutating func stalled() {
        health.committing(at: start)
        #expect(health.failure(at: start + .seconds(10)) == nil)
        #expect(health.failure(at: start + .seconds(11))?.hasPrefix("the disk has not answered for 11 s") == true)
        health.note(.failed(StoreError(code: .unavailable, message: "a change failed")), at: start + .seconds(12))
        #expect(health.failure(at: start + .seconds(12)) == nil)
    }

    @Test("A further attempt at a commit does not restart its time")
    mutating func repeatedAttempt() {
        health.committing(at: start)
        health.committing(at: start + .seconds(30))
        #expect(health.failure(at: start + .seconds(31))?.hasPrefix("the disk has not answered for 31 s") == true)
        health.committed(nil)
        health.committing(at: start + .seconds(32))
        #expect(health.failure(at: start + .seconds(33)) == nil)
    }

    @Test("A failed read is reported until a check succeeds, regardless of commits; checks run at growing intervals")
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

    @Test("A failed checkpoint is reported until one succeeds, but a failed commit takes precedence")
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
