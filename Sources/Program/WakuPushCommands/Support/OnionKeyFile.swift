import Foundation
import SessionProtocol
import WakuCrypto

/// A file with the X25519 key of Session's onion requests: 32 bytes, or 64 hexadecimal digits, accessible to its owner only.
enum OnionKeyFile {
    private static let sizeLimit = 1024

    static func read(_ path: String, _ sodium: Sodium) throws(CommandFailure) -> OnionKey {
        let content = try PrivateFile(kind: "onion key file", path: path)
            .read(upTo: sizeLimit, remedy: "make one with waku-push session key new --out \(path)")
        let text = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        let secret = content.count == OnionKey.byteCount ? content : bytes(hex: text)
        guard let key = secret.flatMap({ OnionKey(SecretBytes($0), sodium: sodium) }) else {
            throw CommandFailure(
                .data,
                "onion key file \(path) contains neither 32 bytes nor 64 hexadecimal digits: make one with waku-push session key new")
        }
        return key
    }

    /// Creates a file with a new key.
    static func create(_ path: String, _ sodium: Sodium) throws(CommandFailure) -> OnionKey {
        let secret = SecretBytes.random(count: OnionKey.byteCount)
        guard let key = OnionKey(secret, sodium: sodium) else { throw CommandFailure(.data, "the key could not be made") }
        try PrivateFile(kind: "onion key file", path: path).create(secret.withBytes { hexString($0) })
        return key
    }
}
