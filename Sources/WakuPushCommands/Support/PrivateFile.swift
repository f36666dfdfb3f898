import Foundation

/// A file with a secret, accessible to its owner only.
struct PrivateFile {
    /// What the file is called in messages: `identity file`.
    let kind: String
    let path: String

    private var name: String { "\(kind) \(path)" }

    /// - Parameters:
    ///   - limit: bytes that are read at most.
    ///   - remedy: how to make such a file.
    /// - Throws: ``CommandFailure`` when it is missing, can't be read, or is readable by others.
    func read(upTo limit: Int, remedy: String) throws(CommandFailure) -> [UInt8] {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw CommandFailure(.data, "\(name) is missing: \(remedy)")
        }
        // systemd provides credentials as files that root owns and this user's group may read.
        let isCredential = attributes[.ownerAccountID] as? Int == 0 && geteuid() != 0
        if let mode = attributes[.posixPermissions] as? Int, mode & (isCredential ? 0o037 : 0o077) != 0 {
            throw CommandFailure(.permission, "\(name) is readable by others (mode 0\(String(mode, radix: 8))): chmod 600 \(path)")
        }
        guard let handle = try? FileHandle(forReadingFrom: URL(fileURLWithPath: path)) else {
            throw CommandFailure(.permission, "\(name) can't be read: give this user access to it")
        }
        guard let content = try? handle.read(upToCount: limit + 1) else { return [] }
        return Array(content)
    }

    /// Creates it with mode 0600 and a line of text, synced.
    ///
    /// - Throws: ``CommandFailure`` when it exists or can't be written.
    func create(_ line: String) throws(CommandFailure) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            let reason =
                errno == EEXIST
                ? "exists already: choose another name" : "can't be made: is the folder there, and may this user write to it?"
            throw CommandFailure(.cannotCreate, "\(name) \(reason)")
        }
        defer { close(file) }
        let text = Array((line + "\n").utf8)
        guard Foundation.write(file, text, text.count) == text.count, fsync(file) == 0 else {
            unlink(path)
            throw CommandFailure(.cannotCreate, "\(name) can't be written: is the disk full?")
        }
    }
}
