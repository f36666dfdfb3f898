package import Foundation
package import WakuCrypto

/// A SQLite database left behind by a process, plain or encrypted by SQLCipher: the file and its write-ahead log, read into memory that is wiped
/// afterwards. Nothing is written.
package struct DatabaseFile {
    static let header = Array("SQLite format 3\0".utf8)
    /// In the header: two bytes, 2 for write-ahead logging, 1 without.
    private static let journalMode = 18..<20
    /// In the header: the page size, 1 for 65,536.
    private static let pageSize = 16..<18
    private static let minimumByteCount = 512

    /// The plain database, with the log's changes.
    package let image: SecretBytes
    /// The number of frames of the write-ahead log that were read into it; nil if there is no log.
    package let logFrameCount: Int?
    /// Whether the database is used with a write-ahead log.
    package let usesLog: Bool
    /// When the file or its log was last changed, the earlier of both.
    package let modified: Date

    /// - Parameters:
    ///   - path: a database that no process has open.
    ///   - byteLimit: the maximum size of the database in memory.
    package init(
        _ path: String, password: SecretBytes?, iterations: Int, byteLimit: Int = Int(ProcessInfo.processInfo.physicalMemory / 2)
    ) throws(StatusGoImportError) {
        guard let file = try InputFile(path) else { throw StatusGoImportError("\(path) can't be read: there is no such file") }
        try Self.checkJournal(of: path)
        try Self.checkIsClosed(file, path)
        let logFile = try InputFile(path + "-wal")
        let log = logFile.flatMap(WriteAheadLog.init)
        let byteCount = try Self.byteCount(file, log: log, path: path)
        guard byteCount <= byteLimit else {
            throw StatusGoImportError("\(path) has \(byteCount >> 20) MiB, too many for this machine's memory: import it on a larger one")
        }
        var usesLog = false
        image = try SecretBytes(count: byteCount) { image throws(StatusGoImportError) in
            let copied = UnsafeMutableRawBufferPointer(rebasing: image[..<min(file.byteCount, byteCount)])
            guard file.read(into: copied, at: 0), logFile.flatMap({ log?.apply($0, to: image) }) ?? true else {
                throw StatusGoImportError("\(path) can't be read, or was changed meanwhile: stop the server, and import again")
            }
            usesLog = try Self.makePlain(image, path, password: password, iterations: iterations)
            if let log, Self.pageByteCount(image) != log.pageByteCount {
                throw StatusGoImportError("\(path)-wal has pages of another size than \(path): it belongs to another database")
            }
        }
        self.usesLog = usesLog
        logFrameCount = logFile.map { _ in log?.frameCount ?? 0 }
        modified = min(file.modified, logFile.flatMap { $0.byteCount > 0 ? $0.modified : nil } ?? file.modified)
    }

    /// The size of the database with the log's changes.
    private static func byteCount(_ file: InputFile, log: WriteAheadLog?, path: String) throws(StatusGoImportError) -> Int {
        guard file.byteCount >= minimumByteCount else { throw StatusGoImportError("\(path) is not a SQLite database") }
        guard let log else { return file.byteCount }
        // All pages that are not in the file were written to the log, except the one with SQLite's locks.
        guard log.pageCount <= file.byteCount / log.pageByteCount + log.positions.count + 1 else {
            throw StatusGoImportError("\(path)-wal continues a larger database than \(path): it belongs to another one")
        }
        return log.pageCount * log.pageByteCount
    }

    /// Decrypts a database in its place if it is encrypted.
    ///
    /// - Returns: whether it is used with a write-ahead log.
    static func makePlain(
        _ image: UnsafeMutableRawBufferPointer, _ path: String, password: SecretBytes?, iterations: Int
    ) throws(StatusGoImportError) -> Bool {
        guard image.count >= minimumByteCount else { throw StatusGoImportError("\(path) is not a SQLite database") }
        if !image.starts(with: header) {
            guard let password else {
                throw StatusGoImportError(
                    "\(path) is encrypted, or is not a SQLite database: give the server's password with --password-file")
            }
            guard let cipher = SQLCipher(UnsafeRawBufferPointer(image), password: password, iterations: iterations) else {
                throw StatusGoImportError(
                    "\(path) can't be decrypted: the password or --kdf-iterations is wrong, or its first page is damaged")
            }
            if let page = cipher.decrypt(image) {
                throw StatusGoImportError("page \(page) of \(path) is damaged: import a backup of the database")
            }
        }
        // A database in memory has no write-ahead log.
        let usesLog = image[journalMode.lowerBound] == 2
        for index in journalMode { image[index] = 1 }
        return usesLog
    }

    private static func pageByteCount(_ image: UnsafeMutableRawBufferPointer) -> Int {
        let size = Int(image[pageSize.lowerBound]) << 8 | Int(image[pageSize.lowerBound + 1])
        return size == 1 ? 65_536 : size
    }

    // MARK: Use by other processes

    /// A rollback journal with a header holds the pages as they were before a transaction that did not end.
    private static func checkJournal(of path: String) throws(StatusGoImportError) {
        guard let journal = try InputFile(path + "-journal"), journal.byteCount > 0 else { return }
        var magic: UInt64 = 0
        let isRead = withUnsafeMutableBytes(of: &magic) { bytes in
            journal.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<min(bytes.count, journal.byteCount)]), at: 0)
        }
        guard !isRead || magic != 0 else { return }
        throw StatusGoImportError(
            "\(path)-journal is left over from a transaction that did not end: start status-go's server once more, which undoes it, and stop it"
        )
    }

    private static func checkIsClosed(_ file: InputFile, _ path: String) throws(StatusGoImportError) {
        guard !isLocked(file), !isOpen(file) else {
            throw StatusGoImportError("\(path) is in use by a running server: stop it first")
        }
    }

    /// Whether another process holds a lock of SQLite: with a write-ahead log, every process that has the database open does.
    private static func isLocked(_ file: InputFile) -> Bool {
        // PENDING, RESERVED and SHARED of https://www.sqlite.org/lockingv3.html
        var lock = flock(l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0x4000_0000, l_len: 512, l_pid: 0)
        return fcntl(file.descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }

    /// Whether a process that this user may examine has it open.
    private static func isOpen(_ opened: InputFile) -> Bool {
        var file = stat()
        guard fstat(opened.descriptor, &file) == 0 else { return false }
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
