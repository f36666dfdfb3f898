import Testing

@testable import Gorush

struct IndexedHeapTests {
    @Test func keepsTheOrderOfASortedArray() {
        var generator = SplitMix(seed: 1)
        var heap = IndexedHeap<Int>()
        var model: [Int64: Int] = [:]
        for id in Int64(0)..<5000 {
            let key = Int.random(in: 0..<1000, using: &generator)
            heap.insert(id, key: key)
            model[id] = key
            let other = Int64.random(in: 0...id, using: &generator)
            if id.isMultiple(of: 3) { #expect(heap.remove(other) == (model.removeValue(forKey: other) != nil)) }
            #expect(heap.first?.key == model.values.min() || id > 200)
        }
        #expect(heap.count == model.count)
        var keys: [Int] = []
        while let id = heap.popFirst() { keys.append(model[id] ?? -1) }
        #expect(keys == model.values.sorted())
        #expect(heap.isEmpty)
    }
}

/// Numbers that are the same in each run.
struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
