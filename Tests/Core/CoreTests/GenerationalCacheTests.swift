import Core
import TestSupport
import Testing

@Suite struct GenerationalCacheTests {
    @Test func theOldGenerationIsDroppedWhenTheYoungOneIsFull() {
        var cache = GenerationalCache<Int, Int>(capacity: 2)
        for key in 0..<5 { cache.set(key * 10, of: key) }
        #expect((0..<5).map { cache.value(of: $0) } == [nil, nil, 20, 30, 40])
        #expect(cache.count == 3)
    }

    @Test func settingAYoungKeyAgainDropsNothing() {
        var cache = GenerationalCache<Int, Int>(capacity: 2)
        for key in 0..<4 { cache.set(key, of: key) }
        for _ in 0..<10 { cache.set(30, of: 3) }
        #expect((0..<4).map { cache.value(of: $0) } == [0, 1, 2, 30])
    }

    @Test func onlyARefreshedEntryOutlivesItsGeneration() {
        var read = GenerationalCache<Int, Int>(capacity: 2)
        for key in 0..<3 { read.set(key, of: key) }
        var refreshed = read
        #expect(read.value(of: 0) == 0)
        #expect(refreshed.refreshedValue(of: 0) == 0)
        #expect(refreshed.refreshedValue(of: 9) == nil)
        read.set(3, of: 3)
        read.set(4, of: 4)
        refreshed.set(3, of: 3)
        #expect(read.value(of: 0) == nil)
        #expect(refreshed.value(of: 0) == 0)
    }

    @Test func removedKeysAreGoneFromBothGenerations() {
        var cache = GenerationalCache<Int, Int>(capacity: 2)
        for key in 0..<3 { cache.set(key, of: key) }
        #expect(cache.refreshedValue(of: 0) == 0)
        cache.remove(0)
        #expect(cache.value(of: 0) == nil && cache.value(of: 1) == 1)
        cache.removeAll()
        #expect(cache.count == 0 && cache.value(of: 1) == nil)
    }

    @Test func insertReportsWhetherAnElementIsNew() {
        var cache = GenerationalCache<Int, Void>(capacity: 3)
        #expect(cache.insert(1) == true)
        #expect(cache.insert(1) == false)
        for key in 2..<6 { #expect(cache.insert(key) == true) }
        #expect(cache.insert(1) == false, "still in the old generation")
        #expect(cache.contains(5) && !cache.contains(7))
    }

    /// At least the last `capacity` keys are kept, and never more than twice as many entries.
    @Test(arguments: 1...8) func boundsHoldForAnyOrder(capacity: Int) {
        var random = SeededGenerator(seed: UInt64(capacity))
        var cache = GenerationalCache<Int, Int>(capacity: capacity)
        var latest: [Int] = []
        for step in 0..<2_000 {
            let key = Int.random(in: 0..<20, using: &random)
            cache.set(step, of: key)
            latest.removeAll { $0 == key }
            latest.append(key)
            #expect(cache.count <= 2 * capacity)
            #expect(cache.value(of: key) == step)
            let lost = latest.suffix(capacity).filter { !cache.contains($0) }
            #expect(lost.isEmpty)
        }
    }
}
