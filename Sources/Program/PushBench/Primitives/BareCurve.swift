import CSecp256k1
import Foundation
import WakuCrypto

/// libsecp256k1's calls on preallocated memory. For one thread.
final class BareCurve {
    private let context: OpaquePointer
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 16)
    private let secret: UnsafeMutablePointer<UInt8>
    private let digest: UnsafeMutablePointer<UInt8>
    private let fresh: UnsafeMutablePointer<UInt8>
    /// The result of the last ECDH, 32 bytes.
    let shared: UnsafeMutablePointer<UInt8>
    /// The public key in 65 bytes.
    let serialized: UnsafeMutablePointer<UInt8>
    private let point = UnsafeMutablePointer<secp256k1_pubkey>.allocate(capacity: 1)
    private let result = UnsafeMutablePointer<secp256k1_pubkey>.allocate(capacity: 1)
    private let signature = UnsafeMutablePointer<secp256k1_ecdsa_signature>.allocate(capacity: 1)
    private let recoverable = UnsafeMutablePointer<secp256k1_ecdsa_recoverable_signature>.allocate(capacity: 1)
    private let produced = UnsafeMutablePointer<secp256k1_ecdsa_recoverable_signature>.allocate(capacity: 1)

    init() {
        guard let context = secp256k1_context_create(UInt32(SECP256K1_CONTEXT_NONE)), let start = memory.baseAddress else {
            preconditionFailure("no memory for libsecp256k1")
        }
        self.context = context
        let bytes = start.initializeMemory(as: UInt8.self, repeating: 0, count: memory.count)
        (secret, digest, fresh, shared, serialized) = (bytes, bytes + 32, bytes + 64, bytes + 96, bytes + 128)
        PrivateKey.generate().withBytes { secret.update(from: $0.baseAddress ?? UnsafePointer(secret), count: 32) }
        for (index, byte) in randomBytes(32).enumerated() { digest[index] = byte }
        check(secp256k1_context_randomize(context, randomBytes(32)))
        check(secp256k1_ec_pubkey_create(context, point, secret))
        check(secp256k1_ecdsa_sign_recoverable(context, recoverable, digest, secret, nil, nil))
        check(secp256k1_ecdsa_recoverable_signature_convert(context, signature, recoverable))
        serialize(point)
    }

    deinit {
        secp256k1_context_destroy(context)
        memory.deallocate()
        point.deallocate()
        result.deallocate()
        signature.deallocate()
        recoverable.deallocate()
        produced.deallocate()
    }

    func ecdh() {
        check(secp256k1_ecdh(context, shared, point, secret, Self.copyX, nil))
    }

    func recover() {
        check(secp256k1_ecdsa_recover(context, result, recoverable, digest))
    }

    func verify() {
        check(secp256k1_ecdsa_verify(context, signature, digest, point))
    }

    func sign() {
        check(secp256k1_ecdsa_sign_recoverable(context, produced, digest, secret, nil, nil))
    }

    func generate() {
        BareCiphers.random(fresh, 32)
        check(secp256k1_ec_pubkey_create(context, result, fresh))
    }

    /// Generates the ephemeral key of a sealed message.
    func generateAndSerialize() {
        generate()
        serialize(result)
    }

    func parse() {
        check(secp256k1_ec_pubkey_parse(context, result, serialized, 65))
    }

    private func serialize(_ point: UnsafeMutablePointer<secp256k1_pubkey>) {
        var count = 65
        check(secp256k1_ec_pubkey_serialize(context, serialized, &count, point, UInt32(SECP256K1_EC_UNCOMPRESSED)))
    }

    private static let copyX: secp256k1_ecdh_hash_function = { output, x, _, _ in
        guard let output, let x else { return 0 }
        memcpy(output, x, 32)
        return 1
    }
}

/// These calls fail only for invalid arguments, which would be an error of this program.
func check(_ result: Int32) {
    precondition(result == 1, "a library call failed")
}
