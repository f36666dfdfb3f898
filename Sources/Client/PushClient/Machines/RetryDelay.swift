import Core

/// Growing pauses: base · n · 2^n after n failures, plus up to a tenth at random, so that the clients of a failed server do not
/// all return at the same moment. Each pause is longer than the previous one, regardless of the random part.
enum RetryDelay {
    static func after(failures: Int, base: Duration, jitter: Double) -> Duration {
        let n = min(max(failures, 1), 16)
        let pause = base * n * (1 << n)
        return pause + pause / 10 * min(max(jitter, 0), 1)
    }
}

/// Random numbers from 0 to 1 for pauses. Not for secrets.
struct Jitter: Sendable {
    private var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    static func random() -> Jitter { Jitter(seed: .random(in: .min ... .max)) }

    mutating func next() -> Double {
        Double(random.next() >> 11) / 0x1p53
    }
}
