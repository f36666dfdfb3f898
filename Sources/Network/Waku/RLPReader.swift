/// RLP, Ethereum's encoding of nested lists of byte strings: the part that node records need, one list of byte strings.
///
///     string  one byte below 0x80 · (0x80 + length ≤ 55) ‖ bytes · (0xB7 + bytes of length) ‖ length ‖ bytes
///     list    (0xC0 + length ≤ 55) ‖ items · (0xF7 + bytes of length) ‖ length ‖ items
package struct RLPReader {
    private let bytes: [UInt8]
    package private(set) var position: Int
    private let end: Int

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    /// A reader of the items of a list; nil unless it spans all bytes.
    package init?(listIn bytes: [UInt8]) {
        var whole = RLPReader(bytes, bytes.indices)
        guard let content = whole.header(short: 0xC0), content.upperBound == bytes.count else { return nil }
        self.init(bytes, content)
    }

    package var isAtEnd: Bool { position == end }

    /// The next item; nil unless it is a byte string.
    package mutating func string() -> ArraySlice<UInt8>? {
        guard position < end else { return nil }
        if bytes[position] < 0x80 {
            position += 1
            return bytes[position - 1..<position]
        }
        return header(short: 0x80).map { bytes[$0] }
    }

    /// The content of an item of either kind; nil when it is malformed.
    package mutating func skip() -> ArraySlice<UInt8>? {
        guard position < end else { return nil }
        return bytes[position] < 0xC0 ? string() : header(short: 0xC0).map { bytes[$0] }
    }

    /// The range of the next item's content, after which the position is then; nil when it is malformed.
    private mutating func header(short: UInt8) -> Range<Int>? {
        guard position < end, bytes[position] >= short, bytes[position] - short < 64 else { return nil }
        let first = Int(bytes[position] - short)
        position += 1
        var length = first
        if first > 55 {
            // Records are far smaller than 65,536 bytes.
            guard first - 55 <= 2, first - 55 <= end - position else { return nil }
            length = bytes[position..<position + first - 55].reduce(0) { $0 << 8 | Int($1) }
            position += first - 55
        }
        guard length <= end - position else { return nil }
        defer { position += length }
        return position..<position + length
    }
}
