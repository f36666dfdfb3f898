import Foundation
import TestSupport
import Testing
import WakuCrypto

/// Every decoder of foreign bytes, on mutated messages and on its corpus: none may crash, take long, or read a message that it then writes differently.
///
/// A moment each with every test run. Deploy/dev/fuzz runs them for longer, guided by coverage and under the address sanitizer, and adds to the corpora.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct FuzzTests {
    private static func check(_ decoder: Decoder, _ input: [UInt8]) {
        let began = ContinuousClock.now
        let outcome = decoder.decode(input)
        // A sanitizer and a busy machine included.
        let time = ContinuousClock.now - began
        if time > .seconds(5) || outcome == .inconsistent { Issue.record("\(decoder.name) \(outcome) in \(time): \(hexString(input))") }
    }

    @Test(arguments: Decoder.all)
    func mutations(of decoder: Decoder) throws {
        var mutator = Mutator(random: SeededGenerator(seed: 1))
        var pool = decoder.seeds
        let start = ContinuousClock.now
        var count = 0
        while ContinuousClock.now - start < .milliseconds(100) || count < 200 {
            let chosen = pool.randomElement(using: &mutator.random) ?? []
            let input = mutator.mutated(chosen, others: pool)
            Self.check(decoder, input)
            // Mutations of an accepted input get further than those of the seeds.
            if decoder.decode(input) == .taken, input != chosen, pool.count < 500 { pool.append(input) }
            count += 1
        }
    }

    @Test(arguments: Decoder.all)
    func validInputsAreAccepted(of decoder: Decoder) {
        for seed in decoder.seeds { #expect(decoder.decode(seed) == .taken, "\(decoder.name) \(hexString(seed))") }
        #expect(decoder.decode([]) != .inconsistent)
    }

    /// Inputs that libFuzzer found by coverage, and inputs of former crashes.
    @Test(arguments: Decoder.all)
    func corpora(of decoder: Decoder) throws {
        let folder = Repository.file("Tests/FuzzTests/Corpora/\(decoder.folder)")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files { Self.check(decoder, Array(try Data(contentsOf: file))) }
    }

    /// A folder with another name would never be run.
    @Test func eachCorpusHasItsDecoder() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Repository.file("Tests/FuzzTests/Corpora").path)
        #expect(Set(folders) == Set(Decoder.all.map(\.folder)))
        #expect(Set(Decoder.all.map(\.folder)).count == Decoder.all.count)
    }

    /// Lengths and field numbers at their limits.
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

extension Decoder: CustomTestStringConvertible {
    var testDescription: String { name }
}
