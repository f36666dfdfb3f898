import Foundation
package import WakuCrypto

/// The file of a SQLite database, plain or encrypted by SQLCipher, read into memory that is wiped afterwards. Nothing is written.
package enum DatabaseFile {
    static let header = Array("SQLite format 3\0".utf8)
    /// Of the header: two bytes, 2 for write-ahead logging, 1 without.
    private static let journalMode = 18..<20

    /// - Parameters:
    ///   - path: a database that no process has open.
    ///   - password: if it is encrypted.
    ///   - iterations: of SQLCipher's key derivation.
    /// - Returns: a plain database.
    /// - Throws: ``StatusGoImportError``
    package static func read(_ path: String, password: SecretBytes?, iterations: Int) throws(StatusGoImportError) -> SecretBytes {
        try checkIsClosed(path)
        let file: Data
        do {
            file = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
        } catch {
            throw StatusGoImportError("\(path) can't be read: is it there, and may this user read it?")
        }
        return try file.withUnsafeBytes { file in
            Result { () throws(StatusGoImportError) in try plain(file, path, password: password, iterations: iterations) }
        }.get()
    }

    static func plain(
        _ file: UnsafeRawBufferPointer, _ path: String, password: SecretBytes?, iterations: Int
    ) throws(StatusGoImportError) -> SecretBytes {
        guard file.count >= 512 else { throw StatusGoImportError("\(path) is not a SQLite database") }
        if file.starts(with: header) {
            return SecretBytes(count: file.count) { output in
                output.copyMemory(from: file)
                useNoLog(output)
            }
        }
        guard let password else {
            throw StatusGoImportError("\(path) is encrypted, or is not a SQLite database: give the server's password with --password-file")
        }
        guard let cipher = SQLCipher(file, password: password, iterations: iterations) else {
            throw StatusGoImportError("\(path) can't be decrypted: the password or --kdf-iterations is wrong, or its first page is damaged")
        }
        return try SecretBytes(count: file.count) { output throws(StatusGoImportError) in
            if let page = cipher.decrypt(file, into: output) {
                throw StatusGoImportError("page \(page) of \(path) is damaged: import a backup of the database")
            }
            useNoLog(output)
        }
    }

    /// A database in memory has no write-ahead log. That of the file is empty, or the file is refused.
    private static func useNoLog(_ output: UnsafeMutableRawBufferPointer) {
        for index in journalMode { output[index] = 1 }
    }

    // MARK: Whether it is in use

    private static func checkIsClosed(_ path: String) throws(StatusGoImportError) {
        for suffix in ["-wal", "-journal"] {
            let size = (try? FileManager.default.attributesOfItem(atPath: path + suffix))?[.size] as? Int
            guard size ?? 0 == 0 else {
                throw StatusGoImportError(
                    "\(path + suffix) contains changes that are not in \(path): start status-go's server once more and stop it with SIGTERM"
                )
            }
        }
        guard !isLocked(path), !isOpen(path) else {
            throw StatusGoImportError("\(path) is in use by a running server: stop it first")
        }
    }

    /// Whether another process has a lock of SQLite's on it: those that use a write-ahead log always have.
    private static func isLocked(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        // PENDING, RESERVED and SHARED of https://www.sqlite.org/lockingv3.html
        var lock = flock(l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0x4000_0000, l_len: 512, l_pid: 0)
        return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }

    /// Whether a process that this user may examine has it open.
    private static func isOpen(_ path: String) -> Bool {
        var file = stat()
        guard stat(path, &file) == 0 else { return false }
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        for process in processes where Int32(process) != nil && Int32(process) != getpid() {
            let folder = "/proc/\(process)/fd"
            for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
                var other = stat()
                if stat("\(folder)/\(name)", &other) == 0, other.st_dev == file.st_dev, other.st_ino == file.st_ino { return true }
            }
        }
        return false
    }
}
