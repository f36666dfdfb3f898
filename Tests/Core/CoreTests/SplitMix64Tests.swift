import Core
import Testing

@Suite struct SplitMix64Tests {
    /// The first numbers of the reference implementation, prng.di.unimi.it/splitmix64.c, with seed 1234567.
    @Test func referenceNumbers() {
        var random = SplitMix64(seed: 1_234_567)
        let expected: [UInt64] = [
            6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ]
        #expect(expected.map { _ in random.next() } == expected)
    }
}
