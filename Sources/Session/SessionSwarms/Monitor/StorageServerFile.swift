import Foundation
package import SessionProtocol

/// `--session-nodes FILE`.
package enum StorageServerFile {
    /// The file can't be used.
    package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        package let path: String
        package let reason: String

        package var description: String { "nodes file \(path): \(reason)" }
    }

    /// Reads the file. It blocks: not for the cooperative pool.
    ///
    /// - Throws: ``Failure``
    package static func read(_ path: String) throws(Failure) -> StorageServerList {
        // Without waiting for a writer, if it is a pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw Failure(path: path, reason: String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Failure(path: path, reason: "not a regular file")
        }
        // A byte more than allowed, by which the list is refused.
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        guard let data = try? file.read(upToCount: StorageServerList.maximumByteCount + 1) else {
            throw Failure(path: path, reason: "it can't be read")
        }
        do throws(StorageServerList.Malformed) {
            return try StorageServerList(parsingFile: [UInt8](data))
        } catch {
            throw Failure(path: path, reason: error.description)
        }
    }
}
