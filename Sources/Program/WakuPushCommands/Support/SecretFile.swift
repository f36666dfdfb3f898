import Foundation
import Core
import WakuCrypto

/// A file with a secret in a single line.
enum SecretFile {
    static let maximumByteCount = 64 << 10

    static func read(_ path: String) throws(CommandFailure) -> String {
        guard let file = FileHandle(forReadingAtPath: path), let content = try? file.read(upToCount: maximumByteCount + 1) ?? Data() else {
            throw CommandFailure(.data, "secret file \(path) can't be read: is it there, and may this user read it?")
        }
        guard content.count <= maximumByteCount else {
            throw CommandFailure(.data, "secret file \(path) has more than \(maximumByteCount) bytes: it must contain a single line")
        }
        let secret = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard !secret.isEmpty, !secret.contains(where: \.isNewline) else {
            throw CommandFailure(.data, "secret file \(path) must contain a single line")
        }
        return secret
    }
}

/// Reads a secret from the first line of a file or of standard input: on the command line it would be visible to all users of the machine.
enum SecretInput {
    static func token(_ path: String) throws(CommandFailure) -> DeviceToken { DeviceToken(try line(path, "token")) }

    static func password(_ path: String) throws(CommandFailure) -> SecretBytes { SecretBytes(Array(try line(path, "password").utf8)) }

    /// - Parameters:
    ///   - path: `-` for standard input.
    ///   - name: the name of the contents, for messages.
    private static func line(_ path: String, _ name: String) throws(CommandFailure) -> String {
        let source = path == "-" ? "standard input" : "\(name) file \(path)"
        let text: [UInt8]?
        do {
            text = try LineReader(path, maximumLineByteCount: SecretFile.maximumByteCount).next()
        } catch {
            throw CommandFailure(.data, "\(source) \(error.reason)")
        }
        let line = String(decoding: text ?? [], as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard !line.isEmpty else { throw CommandFailure(.data, "\(source) contains no \(name)") }
        return line
    }
}
