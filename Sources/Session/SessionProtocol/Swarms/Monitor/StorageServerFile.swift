import Foundation

/// `--session-nodes FILE`.
package enum StorageServerFile {
    /// The file is unusable.
    package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        package let path: String
        package let reason: String

        package var description: String { "nodes file \(path): \(reason)" }
    }

    /// Reads the file. One without a usable server is refused, as no subscription could be monitored.
    ///
    /// Blocks, so it must not run on the cooperative pool.
    package static func read(_ path: String) throws(Failure) -> StorageServerList {
        // O_NONBLOCK: does not wait for a writer if the file is a pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw Failure(path: path, reason: String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Failure(path: path, reason: "not a regular file")
        }
        // Reads a byte more than allowed, so that a larger file is refused.
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        guard let data = try? file.read(upToCount: StorageServerList.maximumByteCount + 1) else {
            throw Failure(path: path, reason: "it can't be read")
        }
        do throws(StorageServerList.Malformed) {
            let list = try StorageServerList(parsingFile: [UInt8](data))
            guard !list.servers.isEmpty else { throw StorageServerList.Malformed(description: "it lists no storage server") }
            return list
        } catch {
            throw Failure(path: path, reason: error.description)
        }
    }
}
