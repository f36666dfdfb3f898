import WakuCrypto

/// This project's implementation: libcrypto has none.
enum BareKeccak {
    @inline(never) static func hash(_ bytes: [UInt8]) {
        precondition(Keccak256.hash(bytes).count == Keccak256.byteCount)
    }
}
