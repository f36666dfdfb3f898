import Foundation
import Storage

/// The audit log of a data folder: a JSON object a line, the oldest first.
///
///     audit.log      appended and synchronized to disk, until it has `sizeLimit` bytes
///     audit.log.1    the previous one, replaced at each rotation
///     audit.lock     locked while writing: the daemon and commands append to the same file
///
/// It is in the data folder with either store. The folder's owner can change it.
package struct AuditLog: Sendable {
    /// Why a record was not written, or the records were not read.
    package struct Failure: Error {
        package let message: String
    }

    package struct Latest: Sendable {
        /// The oldest first.
        package let records: [AuditRecord]
        /// The number of lines of both files that are no records: truncated by a crash, altered, or of another release.
        package let unreadableCount: Int
    }

    private let folder: String
    /// In bytes, of each of the two files.
    private let sizeLimit: Int

    /// - Parameter sizeLimit: in bytes, of each of the two files.
    package init(in folder: String, sizeLimit: Int = 1 << 20) {
        self.folder = folder
        self.sizeLimit = sizeLimit
    }

    private var path: String { folder + "/audit.log" }
    private var previousPath: String { folder + "/audit.log.1" }

    /// Appends a record. When this returns, it is on disk. Blocks on the disk.
    package func append(_ record: AuditRecord) throws(Failure) {
        let lock = try open(folder + "/audit.lock", O_RDWR)
        defer { close(lock) }
        while flock(lock, LOCK_EX) != 0 { guard errno == EINTR else { throw failure(folder + "/audit.lock") } }
        var status = stat()
        if lstat(path, &status) == 0, status.st_size >= sizeLimit, rename(path, previousPath) != 0 { throw failure(path) }
        let file = try open(path, O_RDWR | O_APPEND)
        defer { close(file) }
        let size = lseek(file, 0, SEEK_END)
        try write(line(record, after: file, size: Int(size)), to: file)
        guard fsync(file) == 0 else { throw failure(path) }
        if size == 0 { try synchronizeFolder() }
    }

    /// Appends a record on a thread that may block.
    package func appendWithoutBlocking(_ record: AuditRecord) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            DispatchQueue.global().async { continuation.resume(with: Swift.Result { try append(record) }) }
        }
    }

    /// The latest records. A file that is missing has none.
    package func latest(_ limit: Int) throws(Failure) -> Latest {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        let lines = try (read(previousPath) + [UInt8(ascii: "\n")] + read(path)).split(separator: UInt8(ascii: "\n"))
        let records = lines.compactMap { try? decoder.decode(AuditRecord.self, from: Data($0)) }
        return Latest(records: records.suffix(limit), unreadableCount: lines.count - records.count)
    }

    private func read(_ path: String) throws(Failure) -> [UInt8] {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            guard errno == ENOENT else { throw failure(path, "read") }
            return []
        }
        defer { close(file) }
        var (content, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure(path, "read") }
            guard count > 0 else { return content }
            content += buffer.prefix(count)
        }
    }

    /// A line that a crash truncated is ended first.
    private func line(_ record: AuditRecord, after file: Int32, size: Int) throws(Failure) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let bytes = try? encoder.encode(record) else { throw Failure(message: "the audit record can't be encoded") }
        var last = UInt8(ascii: "\n")
        if size > 0, pread(file, &last, 1, off_t(size - 1)) != 1 { throw failure(path) }
        return (last == UInt8(ascii: "\n") ? [] : [UInt8(ascii: "\n")]) + bytes + [UInt8(ascii: "\n")]
    }

    private func write(_ bytes: [UInt8], to file: Int32) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure(path) }
            rest = rest.dropFirst(count)
        }
    }

    private func open(_ path: String, _ flags: Int32) throws(Failure) -> Int32 {
        let file = DataFolder.openFile(path, flags | O_NOFOLLOW)
        guard file >= 0 else { throw failure(path) }
        return file
    }

    private func synchronizeFolder() throws(Failure) {
        let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure(folder) }
    }

    private func failure(_ path: String, _ verb: String = "written") -> Failure {
        Failure(message: "the audit log \(path) can't be \(verb): \(String(cString: strerror(errno)))")
    }
}
