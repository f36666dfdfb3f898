import Foundation

/// Reads a file line by line, without loading all of it.
final class LineReader {
    struct CannotRead: Error {}

    private let file: UnsafeMutablePointer<FILE>
    private var buffer: UnsafeMutablePointer<CChar>?
    private var capacity = 0

    init(_ path: String) throws {
        guard let file = fopen(path, "re") else { throw CannotRead() }
        self.file = file
    }

    deinit {
        fclose(file)
        free(buffer)
    }

    /// The next line without its line break; nil at the end.
    func next() -> [UInt8]? {
        let count = getline(&buffer, &capacity, file)
        guard count >= 0, let buffer else { return nil }
        var line = UnsafeRawBufferPointer(start: buffer, count: count)[...]
        if line.last == UInt8(ascii: "\n") { line = line.dropLast() }
        return Array(line)
    }
}
