import WakuCrypto
import Core

/// An onion request, version 4, as posted. At most 10 MiB.
///
///     length (4 bytes, little-endian) ‖ ciphertext ‖ JSON {"ephemeral_key": hex X25519, "enc_type": …}
package struct OnionRequest: Sendable {
    package static let maximumByteCount = 10 << 20
    /// Limit of the JSON at the end in bytes. It has two short members.
    static let maximumTrailerByteCount = 16_384

    package let encryption: OnionEncryption
    /// The client's ephemeral public key, 32 bytes.
    package let ephemeralKey: [UInt8]
    package let ciphertext: ArraySlice<UInt8>

    /// - Throws: ``OnionError/tooLarge``, ``OnionError/malformed(_:)``
    package init(parsing body: [UInt8]) throws(OnionError) {
        guard body.count <= Self.maximumByteCount else { throw .tooLarge }
        guard body.count >= 4 else { throw .malformed("no length") }
        let length = body[..<4].reversed().reduce(0) { $0 << 8 | Int($1) }
        guard length <= body.count - 4 else { throw .malformed("the ciphertext is truncated") }
        ciphertext = body[4..<4 + length]
        let trailer = body[(4 + length)...]
        guard trailer.count <= Self.maximumTrailerByteCount, let parameters = try? JSONValue(parsing: trailer).object else {
            throw .malformed("no JSON object after the ciphertext")
        }
        guard let digits = parameters["ephemeral_key"]?.text, let key = bytes(hex: digits), key.count == 32 else {
            throw .malformed("ephemeral_key is not 64 hexadecimal digits")
        }
        ephemeralKey = key
        switch parameters["enc_type"] {
        case nil: encryption = .aesGCM
        case .string("aes-gcm"), .string("gcm"): encryption = .aesGCM
        case .string("xchacha20"), .string("xchacha20-poly1305"): encryption = .xChaCha20
        default: throw .malformed("enc_type is unknown")
        }
    }
}

package enum OnionEncryption: Hashable, Sendable, CaseIterable {
    /// `xchacha20`, `xchacha20-poly1305`: nonce(24) ‖ ciphertext ‖ tag(16).
    case xChaCha20
    /// `aes-gcm`, `gcm` or none: AES-256-GCM, nonce(12) ‖ ciphertext ‖ tag(16).
    case aesGCM
}

/// The reason why an onion request has no sealed answer.
package enum OnionError: Error, Hashable, Sendable {
    /// Status 413.
    case tooLarge
    /// Not framed as an onion request. Status 400.
    case malformed(String)
    /// Not encrypted to this node's key, altered, or an ephemeral key of small order. Status 400.
    case undecryptable

    package var status: Int { self == .tooLarge ? 413 : 400 }

    /// The body of the response: one line.
    package var text: String {
        switch self {
        case .tooLarge: "onion request larger than \(OnionRequest.maximumByteCount) bytes"
        case .malformed(let problem): "malformed onion request: \(problem)"
        case .undecryptable: "onion request cannot be decrypted"
        }
    }
}
