import Core
import Testing

@testable import SessionProtocol

@Suite struct PlaceIndexTests {
    /// Hashes with many collisions, so that runs of entries meet and wrap around.
    @Test(arguments: [1, 7, 64, UInt64.max]) func findsWhatADictionaryFinds(differentHashes: UInt64) {
        var random = SplitMix64(seed: 18)
        var keys: [UInt64] = []
        var (known, freePlaces): ([UInt64: Int], [Int]) = ([:], [])
        var index = PlaceIndex()
        // The first hashes are just below the end of any table.
        func hash(_ key: UInt64) -> UInt64 { (key &* 0x9E37_79B9_7F4A_7C15) % differentHashes &- 3 }
        for _ in 0..<4000 {
            let key = UInt64.random(in: 0..<300, using: &random)
            if let place = known[key] {
                #expect(index.find(hash(key)) { keys[$0] == key } == place)
                index.remove(place) { hash(keys[$0]) }
                known[key] = nil
                freePlaces.append(place)
            } else {
                #expect(index.find(hash(key)) { keys[$0] == key } == nil)
                let place = freePlaces.popLast() ?? keys.count
                if place == keys.count { keys.append(key) } else { keys[place] = key }
                index.insert(place) { hash(keys[$0]) }
                known[key] = place
            }
        }
        #expect(index.count == known.count && known.count > 50)
        for (key, place) in known { #expect(index.find(hash(key)) { keys[$0] == key } == place) }
    }

    @Test func reservedRoomIsNotOutgrown() {
        var index = PlaceIndex()
        index.reserveCapacity(1000) { _ in 0 }
        for place in 0..<1000 { index.insert(place) { UInt64($0) &* 0x9E37_79B9_7F4A_7C15 } }
        #expect((0..<1000).allSatisfy { place in index.find(UInt64(place) &* 0x9E37_79B9_7F4A_7C15) { $0 == place } == place })
        #expect(index.find(5) { _ in false } == nil)
    }
}
