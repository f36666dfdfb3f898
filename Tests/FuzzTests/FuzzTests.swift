import Foundation
import TestSupport
import Testing
import WakuCrypto

/// Every decoder of what other nodes send, on what is nearly right: none may crash, take long, or read something that it writes otherwise.
///
/// A moment each with every test run. Deploy/dev/fuzz gives them `FUZZ_SECONDS`, under the address sanitizer. A crash is had again by its seed, which
/// is told before: `FUZZ_SEED`.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct FuzzTests {
    private static let seconds = ProcessInfo.processInfo.environment["FUZZ_SECONDS"].flatMap { Double($0) } ?? 0.2
    private static let seed = ProcessInfo.processInfo.environment["FUZZ_SEED"].flatMap { UInt64($0) } ?? 1

    @Test(arguments: Decoder.all)
    func mutations(of decoder: Decoder) throws {
        if Self.seconds > 1 { print("fuzzing \(decoder.name), FUZZ_SEED=\(Self.seed)") }
        var mutator = Mutator(random: SeededGenerator(seed: Self.seed))
        var pool = decoder.seeds
        let start = ContinuousClock.now
        var count = 0
        while ContinuousClock.now - start < .seconds(Self.seconds) || count < 200 {
            let chosen = pool.randomElement(using: &mutator.random) ?? []
            let input = mutator.mutated(chosen, others: pool)
            let began = ContinuousClock.now
            let outcome = decoder.decode(input)
            // A sanitizer and a busy machine included.
            let time = ContinuousClock.now - began
            if time > .seconds(5) || outcome == .inconsistent {
                Issue.record("\(decoder.name) \(outcome) in \(time): \(hexString(input))")
                return
            }
            // What was taken is worth going on from.
            if outcome == .taken, input != chosen {
                if pool.count < 500 { pool.append(input) } else { pool[Int.random(in: pool.indices, using: &mutator.random)] = input }
            }
            count += 1
        }
        if Self.seconds > 1 { print("\(decoder.name): \(count) inputs, \(pool.count) kept") }
    }

    @Test(arguments: Decoder.all)
    func whatIsRightIsTaken(of decoder: Decoder) {
        for seed in decoder.seeds { #expect(decoder.decode(seed) == .taken, "\(decoder.name) \(hexString(seed))") }
        #expect(decoder.decode([]) != .inconsistent)
    }

    /// What was found, or is at an edge by construction: each is taken or refused as it should be.
    @Test(arguments: Decoder.all)
    func edges(of decoder: Decoder) {
        let long = [UInt8](repeating: 0xFF, count: 64)
        let deep = [UInt8](repeating: 0x0A, count: 4096)
        for input in [
            [0], [0xFF], long, deep, [UInt8](repeating: 0, count: 4096), [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [0x80], [0x0B], [0x0C],
        ] {
            #expect(decoder.decode(input) != .inconsistent, "\(decoder.name) \(hexString(input))")
        }
    }
}
