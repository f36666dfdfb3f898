import Foundation
import WakuCrypto

/// A file with a private key: 64 hexadecimal digits, accessible to its owner only.
enum IdentityFile {
    private static let sizeLimit = 1024

    static func read(_ path: String) throws(CommandFailure) -> PrivateKey {
        let content = try PrivateFile(kind: "identity file", path: path)
            .read(upTo: sizeLimit, remedy: "make one with waku-push identity new --out \(path)")
        let text = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count == 2 * PrivateKey.byteCount, let bytes = bytes(hex: text) else {
            throw CommandFailure(
                .data, "identity file \(path) does not contain 64 hexadecimal digits: make one with waku-push identity new")
        }
        do {
            return try PrivateKey(bytes: bytes)
        } catch {
            throw CommandFailure(
                .data, "identity file \(path) does not contain a valid secp256k1 key: make one with waku-push identity new")
        }
    }

    static func write(_ key: PrivateKey, to path: String) throws(CommandFailure) {
        try PrivateFile(kind: "identity file", path: path).create(key.withBytes { hexString($0) })
    }
}
