@testable import Cluster
import Core
import Testing

@Suite struct StoreTroubleTests {
    private func lasts(_ trouble: inout StoreTrouble, fails: Bool = true, at times: Milliseconds...) -> [Bool] {
        var results: [Bool] = []
        for time in times {
            trouble.heartbeatCommitted(storeFails: fails, lease: .seconds(5), at: .at(time))
            results.append(trouble.isLasting)
        }
        return results
    }

    @Test func lastsOnceTheStoreHasFailedForTwoLeases() {
        var trouble = StoreTrouble()
        let first = lasts(&trouble, at: 0, 1000, 9900, 10_000)
        #expect(first == [false, false, false, true])
        let works = lasts(&trouble, fails: false, at: 11_000)
        #expect(works == [false])
        let again = lasts(&trouble, at: 12_000, 21_900, 22_000)
        #expect(again == [false, false, true])
    }

    @Test func aFailureOfTheWholeDatabaseDoesNotCount() {
        var trouble = StoreTrouble()
        _ = lasts(&trouble, at: 0)
        trouble.heartbeatFailed()
        let later = lasts(&trouble, at: 60_000, 69_900, 70_000)
        #expect(later == [false, false, true])
        // A single heartbeat that fails gives nothing back.
        trouble.heartbeatFailed()
        #expect(trouble.isLasting)
        let last = lasts(&trouble, at: 72_000)
        #expect(last == [true])
    }
}
