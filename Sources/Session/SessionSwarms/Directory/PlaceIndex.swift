/// Finds the place of a key in an array that holds the keys. Four bytes for each, or eight, where a dictionary would keep the keys again.
///
/// Open addressing with linear probing, at most three quarters full. What follows a place that is removed is moved up, so that there are no marks of what
/// was. Callers hash and compare: hashes must be keyed where others choose the keys.
struct PlaceIndex: Sendable {
    private static let free: Int32 = -1

    private var table: ContiguousArray<Int32> = []
    private(set) var count = 0

    private var mask: Int { table.count - 1 }

    /// Room for as many without growing.
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
    ///   - place: Of a key that is not in the index.
    ///   - hash: Of the key at a place.
    mutating func insert(_ place: Int, hash: (Int) -> UInt64) {
        reserveCapacity(count + 1, hash: hash)
        put(Int32(place), hash(place))
        count += 1
    }

    /// - Parameters:
    ///   - place: Of a key that is in the index.
    ///   - hash: Of the key at a place.
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
            // Whether its own place is not between the hole and where it is.
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
