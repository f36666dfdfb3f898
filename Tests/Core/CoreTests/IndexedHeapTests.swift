import TestSupport
import Testing

@testable import Core

struct IndexedHeapTests {
    @Test func keepsTheOrderOfASortedArray() {
        var generator = SeededGenerator(seed: 1)
        var heap = IndexedHeap<Int64, Int>()
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
