// Public although only this package uses it: the compiler inlines and specializes public functions across modules, but not package ones
// (Swift 6.3).

/// The SplitMix64 generator: a seed always gives the same numbers, so that decisions can be reproduced. Not for secrets.
public struct SplitMix64: RandomNumberGenerator, Sendable {
    @usableFromInline var state: UInt64

    /// - Parameter seed: Any number; equal seeds give equal sequences.
    @inlinable
    public init(seed: UInt64) {
        state = seed
    }

    /// The next 64 bits. The sequence repeats after 2^64 calls.
    @inlinable
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
