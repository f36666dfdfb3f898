import TestSupport

/// Changes valid messages a little, which gets deeper into a decoder than random bytes.
struct Mutator {
    var random: SeededGenerator

    private static let numbers: [UInt8] = [0, 1, 2, 0x7F, 0x80, 0xFF, 0xFE, 10, 16, 64]

    mutating func mutated(_ input: [UInt8], others: [[UInt8]]) -> [UInt8] {
        var bytes = input
        for _ in 0..<Int.random(in: 1...4, using: &random) { mutate(&bytes, others) }
        return bytes
    }

    private mutating func mutate(_ bytes: inout [UInt8], _ others: [[UInt8]]) {
        guard !bytes.isEmpty else {
            bytes = (0..<Int.random(in: 1...32, using: &random)).map { _ in .random(in: .min ... .max, using: &random) }
            return
        }
        let at = Int.random(in: bytes.indices, using: &random)
        let rest = min(bytes.count - at, Int.random(in: 1...16, using: &random))
        switch Int.random(in: 0..<9, using: &random) {
        case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[at] = Self.numbers.randomElement(using: &random) ?? 0
        case 2: bytes[at] = .random(in: .min ... .max, using: &random)
        case 3: bytes.removeSubrange(at..<at + rest)
        case 4: bytes.insert(contentsOf: bytes[at..<at + rest], at: at)
        case 5: bytes.removeLast(bytes.count - at)
        // A length, as varints and words have it.
        case 6: bytes.replaceSubrange(at..<at + 1, with: [0xFF, 0xFF, 0xFF, 0xFF, .random(in: 0...0x0F, using: &random)])
        case 7: bytes.insert(contentsOf: (0..<rest).map { _ in UInt8.random(in: .min ... .max, using: &random) }, at: at)
        default:
            guard let other = others.randomElement(using: &random), !other.isEmpty else { return }
            let start = Int.random(in: other.indices, using: &random)
            bytes = Array(bytes[..<at]) + other[start...]
        }
        if bytes.count > 100_000 { bytes.removeLast(bytes.count - 100_000) }
    }
}
