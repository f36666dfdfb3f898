import WakuCrypto

/// As this project has it: libcrypto has none.
enum BareKeccak {
    @inline(never) static func hash(_ bytes: [UInt8]) {
        precondition(Keccak256.hash(bytes).count == Keccak256.byteCount)
    }
}
