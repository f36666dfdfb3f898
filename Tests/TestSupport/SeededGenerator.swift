import Core

/// Reproducible random numbers, and random and damaged bytes.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var numbers: SplitMix64

    package init(seed: UInt64) {
        numbers = SplitMix64(seed: seed)
    }

    package mutating func next() -> UInt64 {
        numbers.next()
    }

    /// This number of random bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &self) }
    }

    /// A random element of a list that is not empty.
    package mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &self)]
    }

    /// Damaged bytes: flipped bits, truncation, a part removed or duplicated.
    package mutating func damaged(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...3, using: &self) {
            guard !bytes.isEmpty else { return bytes }
            let position = Int.random(in: bytes.indices, using: &self)
            let end = Int.random(in: position...bytes.count, using: &self)
            switch Int.random(in: 0..<6, using: &self) {
            case 0: bytes.removeSubrange(end...)
            case 1: bytes.removeSubrange(position..<end)
            case 2: bytes.insert(contentsOf: bytes[position..<end], at: position)
            default: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &self)
            }
        }
        return bytes
    }
}
