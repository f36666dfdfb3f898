import Foundation
import WakuCrypto

/// A file with a private key: 64 hexadecimal digits, accessible to its owner only.
enum IdentityFile {
    static func read(_ path: String) throws(CommandFailure) -> PrivateKey {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw CommandFailure(.data, "identity file \(path) is missing: make one with waku-push identity new --out \(path)")
        }
        // systemd provides credentials as files that root owns and this user's group may read.
        let isCredential = attributes[.ownerAccountID] as? Int == 0 && geteuid() != 0
        if let mode = attributes[.posixPermissions] as? Int, mode & (isCredential ? 0o037 : 0o077) != 0 {
            throw CommandFailure(
                .permission, "identity file \(path) is readable by others (mode 0\(String(mode, radix: 8))): chmod 600 \(path)")
        }
        guard let content = FileManager.default.contents(atPath: path) else {
            throw CommandFailure(.permission, "identity file \(path) can't be read: give this user access to it")
        }
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
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            let reason =
                errno == EEXIST
                ? "exists already: choose another name" : "can't be made: is the folder there, and may this user write to it?"
            throw CommandFailure(.cannotCreate, "identity file \(path) \(reason)")
        }
        defer { close(file) }
        let text = Array((key.withBytes { hexString($0) } + "\n").utf8)
        guard Foundation.write(file, text, text.count) == text.count, fsync(file) == 0 else {
            unlink(path)
            throw CommandFailure(.cannotCreate, "identity file \(path) can't be written: is the disk full?")
        }
    }
}
