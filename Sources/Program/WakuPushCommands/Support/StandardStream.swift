import Foundation

/// Writes to standard output and standard error, which may be a closed pipe or a file on a full disk. `FileHandle` would end the process in these
/// cases.
package enum StandardStream {
    static let output = STDOUT_FILENO
    static let error = STDERR_FILENO

    /// Opens the standard streams that are closed on /dev/null. Otherwise the next descriptors of the process get their numbers, and receive the
    /// output. Called before anything else, since the runtime opens some with its first thread.
    ///
    /// Standard output can't be written to then, so that a command whose output is lost fails, as it does for a full disk.
    package static func openClosed() {
        for stream in 0...error where fcntl(stream, F_GETFD) < 0 {
            // A new descriptor has the lowest free number, which is this one.
            _ = open("/dev/null", stream == output ? O_RDONLY : O_RDWR)
        }
    }

    /// Returns whether all of the text was written.
    @discardableResult
    static func write(_ text: String, to stream: Int32) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(stream, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
