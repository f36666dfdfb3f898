import CSecp256k1
import Foundation

/// libsecp256k1's context.
enum Secp256k1 {
    /// Randomized once against side channels, and not changed afterwards, so that libsecp256k1 permits concurrent use.
    nonisolated(unsafe) static let context: OpaquePointer = {
        guard let context = secp256k1_context_create(UInt32(SECP256K1_CONTEXT_NONE)) else {
            preconditionFailure("libsecp256k1 has no memory for a context")
        }
        let seed = SecretBytes.random(count: 32)
        precondition(seed.withBytes { bytes in bytes.baseAddress.map { secp256k1_context_randomize(context, $0) } } == 1)
        return context
    }()
}
