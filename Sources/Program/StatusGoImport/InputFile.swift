import Foundation

/// A regular file that is only read. Opening it never waits: a pipe or a device is refused.
final class InputFile {
    let byteCount: Int
    let modified: Date
    let descriptor: Int32

    /// - Returns: nil if there is no such file.
    /// - Throws: ``StatusGoImportError`` if it can't be read, or is not a regular file.
    init?(_ path: String) throws(StatusGoImportError) {
        descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw StatusGoImportError("\(path) can't be read: may this user read it?")
        }
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw StatusGoImportError("\(path) is not a regular file")
        }
        byteCount = Int(information.st_size)
        modified = Date(timeIntervalSince1970: Double(information.st_mtim.tv_sec) + Double(information.st_mtim.tv_nsec) / 1e9)
    }

    deinit {
        close(descriptor)
    }

    /// Fills a buffer from a position.
    ///
    /// - Returns: false if the file ends before, or can't be read.
    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int) -> Bool {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = pread(descriptor, rest.baseAddress, rest.count, off_t(position + done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
