/// Pauses that grow: base · n · 2^n after n failures, and up to a tenth more by chance, so that many who lost the same server do not come back
/// in one instant. Each pause is longer than the one before, whatever chance says.
enum RetryDelay {
    static func after(failures: Int, base: Duration, jitter: Double) -> Duration {
        let n = min(max(failures, 1), 16)
        let pause = base * n * (1 << n)
        return pause + pause / 10 * min(max(jitter, 0), 1)
    }
}

/// Random numbers from 0 to 1 for pauses. Not for secrets.
struct Jitter: Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    static func random() -> Jitter { Jitter(seed: .random(in: .min ... .max)) }

    /// SplitMix64.
    mutating func next() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        mixed ^= mixed >> 31
        return Double(mixed >> 11) / 0x1p53
    }
}
