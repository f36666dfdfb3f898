import CDispatch
import Foundation

/// Reads a file line by line, without loading all of it, nor a line that is too long.
final class LineReader {
    struct Failure: Error {
        /// `can't be read: is it there, and may this user read it?`
        let reason: String
    }

    private static let chunk = 64 << 10

    private let descriptor: Int32
    private let maximumLineByteCount: Int
    /// nil for a pipe.
    private let fileByteCount: Int?
    private var readByteCount = 0
    private var buffer: ArraySlice<UInt8> = []
    private var isAtEnd = false

    /// - Parameters:
    ///   - path: `-` for standard input.
    ///   - maximumLineByteCount: a longer line is an error.
    init(_ path: String, maximumLineByteCount: Int) throws(Failure) {
        self.maximumLineByteCount = maximumLineByteCount
        descriptor = path == "-" ? fcntl(0, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.unreadable }
        var file = stat()
        fileByteCount = fstat(descriptor, &file) == 0 && file.st_size > 0 ? Int(file.st_size) : nil
    }

    /// The part of the file that was read; nil if its size is not known.
    var share: Double? { fileByteCount.map { Double(readByteCount) / Double($0) } }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    private static let unreadable = Failure(reason: "can't be read: is it there, and may this user read it?")

    /// The next line without its line break; nil at the end.
    ///
    /// - Throws: ``Failure`` when it can't be read, or is too long.
    func next() throws(Failure) -> [UInt8]? {
        var searched = 0
        while true {
            if let end = buffer.dropFirst(searched).firstIndex(of: UInt8(ascii: "\n")) { return try take(upTo: end, rest: end + 1) }
            guard !isAtEnd else { return buffer.isEmpty ? nil : try take(upTo: buffer.endIndex, rest: buffer.endIndex) }
            searched = buffer.count
            guard searched <= maximumLineByteCount else { throw tooLong }
            try read()
        }
    }

    private func take(upTo end: Int, rest: Int) throws(Failure) -> [UInt8] {
        let line = buffer[..<end]
        buffer = buffer[rest...]
        guard line.count <= maximumLineByteCount else { throw tooLong }
        return Array(line)
    }

    private var tooLong: Failure { Failure(reason: "has a line of more than \(maximumLineByteCount) bytes") }

    private func read() throws(Failure) {
        var chunk = [UInt8](repeating: 0, count: Self.chunk)
        var count = -1
        repeat { count = Foundation.read(descriptor, &chunk, Self.chunk) } while count < 0 && errno == EINTR
        guard count >= 0 else { throw Self.unreadable }
        isAtEnd = count == 0
        readByteCount += count
        // Moves the unread part to the front, so that lines already returned use no memory.
        buffer = ArraySlice(Array(buffer) + chunk.prefix(count))
    }
}
