import Foundation

/// A list in a file, an entry per line. `#` begins a comment at the start of a line and after white space; empty lines and a byte order mark are ignored.
struct ListFile {
    private static let maximumLineByteCount = 64 << 10
    /// U+FEFF in UTF-8, which some editors write.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The kind of list, for messages: `list of keys`.
    let kind: String
    let path: String
    /// Whether the path `-` stands for standard input.
    var mayBeStandardInput = false

    private var isStandardInput: Bool { mayBeStandardInput && path == "-" }

    /// - Parameters:
    ///   - expected: An entry, for messages: `a public key in hexadecimal digits`.
    ///   - parse: Returns nil for text that is no entry.
    /// - Throws: ``CommandFailure`` when the file can't be read, or with the numbers of lines that are no entries.
    func entries<Entry>(_ expected: String, _ parse: (String) -> Entry?) throws(CommandFailure) -> [Entry] {
        var entries: [Entry] = []
        var unreadable: [Int] = []
        for (index, line) in try lines().enumerated() {
            let comment = line.indices.first { line[$0] == "#" && ($0 == line.startIndex || line[line.index(before: $0)].isWhitespace) }
            // A line may end with CRLF.
            let text = line[..<(comment ?? line.endIndex)].trimmingCharacters(in: .whitespacesAndNewlines)
            guard !text.isEmpty else { continue }
            if let entry = parse(text) { entries.append(entry) } else { unreadable.append(index + 1) }
        }
        guard let first = unreadable.first else { return entries }
        let others = unreadable.dropFirst().prefix(10).map(String.init).joined(separator: ", ")
        let more = unreadable.count > 11 ? ", and \(unreadable.count - 11) more" : ""
        let place = "\(isStandardInput ? "standard input" : path):\(first)"
        throw CommandFailure(.data, "\(place): not \(expected)\(others.isEmpty ? "" : " (also on lines \(others)\(more))")")
    }

    private func lines() throws(CommandFailure) -> [String] {
        do throws(LineReader.Failure) {
            let reader = try LineReader(
                isStandardInput || path != "-" ? path : "./-", maximumLineByteCount: Self.maximumLineByteCount)
            var lines: [String] = []
            while let line = try reader.next() {
                let isMarked = lines.isEmpty && line.starts(with: Self.byteOrderMark)
                lines.append(String(decoding: isMarked ? line[Self.byteOrderMark.count...] : line[...], as: UTF8.self))
            }
            return lines
        } catch {
            throw CommandFailure(.data, "\(kind) \(isStandardInput ? "in standard input" : path) \(error.reason)")
        }
    }
}
