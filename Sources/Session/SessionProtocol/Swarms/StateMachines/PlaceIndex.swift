/// A hash index into an array of keys. Takes four or eight bytes per key; a dictionary would store the keys a second time.
///
/// Open addressing with linear probing, at most three quarters full. Removal shifts the following entries back, so there are no tombstones. Callers
/// compute the hashes and compare the keys. Hashes of keys that attackers can choose must be keyed.
struct PlaceIndex: Sendable {
    private static let free: Int32 = -1

    private var table: ContiguousArray<Int32> = []
    private(set) var count = 0

    private var mask: Int { table.count - 1 }

    /// Reserves room for `capacity` keys.
    mutating func reserveCapacity(_ capacity: Int, hash: (Int) -> UInt64) {
        var size = max(table.count, 16)
        while size / 4 * 3 < capacity { size *= 2 }
        if size > table.count { resize(to: size, hash: hash) }
    }

    func find(_ hash: UInt64, _ isMatch: (Int) -> Bool) -> Int? {
        guard count > 0 else { return nil }
        var at = Int(truncatingIfNeeded: hash) & mask
        while table[at] != Self.free {
            if isMatch(Int(table[at])) { return Int(table[at]) }
            at = (at + 1) & mask
        }
        return nil
    }

    /// - Parameters:
    ///   - place: The array index of a key that is not in this index.
    ///   - hash: The hash of the key at an array index.
    mutating func insert(_ place: Int, hash: (Int) -> UInt64) {
        reserveCapacity(count + 1, hash: hash)
        put(Int32(place), hash(place))
        count += 1
    }

    /// - Parameters:
    ///   - place: The array index of a key that is in this index.
    ///   - hash: The hash of the key at an array index.
    mutating func remove(_ place: Int, hash: (Int) -> UInt64) {
        guard count > 0 else { return }
        var hole = Int(truncatingIfNeeded: hash(place)) & mask
        while table[hole] != Int32(place) {
            guard table[hole] != Self.free else { return }
            hole = (hole + 1) & mask
        }
        count -= 1
        var at = (hole + 1) & mask
        while table[at] != Self.free {
            let home = Int(truncatingIfNeeded: hash(Int(table[at]))) & mask
            // Moves the entry into the hole unless its home position lies between the hole and its current position.
            if (at - home) & mask >= (at - hole) & mask {
                table[hole] = table[at]
                hole = at
            }
            at = (at + 1) & mask
        }
        table[hole] = Self.free
    }

    private mutating func put(_ place: Int32, _ hash: UInt64) {
        var at = Int(truncatingIfNeeded: hash) & mask
        while table[at] != Self.free { at = (at + 1) & mask }
        table[at] = place
    }

    private mutating func resize(to size: Int, hash: (Int) -> UInt64) {
        let old = table
        table = ContiguousArray(repeating: Self.free, count: size)
        for place in old where place != Self.free { put(place, hash(Int(place))) }
    }
}
