import Foundation

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
