/// RLP, Ethereum's encoding of nested lists of byte strings: the part that node records need, one list of byte strings.
///
///     string  one byte below 0x80 · (0x80 + length ≤ 55) ‖ bytes · (0xB7 + bytes of length) ‖ length ‖ bytes
///     list    (0xC0 + length ≤ 55) ‖ items · (0xF7 + bytes of length) ‖ length ‖ items
struct RLPReader {
    private let bytes: [UInt8]
    private(set) var position: Int
    private let end: Int

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    /// A reader of the items of a list that spans all bytes.
    init(listIn bytes: [UInt8]) throws(ENRError) {
        var whole = RLPReader(bytes, bytes.indices)
        let content = try whole.header(short: 0xC0)
        guard content.upperBound == bytes.count else { throw .malformed }
        self.init(bytes, content)
    }

    var isAtEnd: Bool { position == end }

    /// The next item, which must be a byte string.
    mutating func string() throws(ENRError) -> ArraySlice<UInt8> {
        guard position < end else { throw .malformed }
        if bytes[position] < 0x80 {
            position += 1
            return bytes[position - 1..<position]
        }
        return bytes[try header(short: 0x80)]
    }

    /// Skips an item of any kind.
    mutating func skip() throws(ENRError) {
        guard position < end else { throw .malformed }
        if bytes[position] < 0xC0 { _ = try string() } else { _ = try header(short: 0xC0) }
    }

    /// The range of the next item's content; moves the position after it.
    private mutating func header(short: UInt8) throws(ENRError) -> Range<Int> {
        guard position < end, bytes[position] >= short, bytes[position] - short < 64 else { throw .malformed }
        let first = Int(bytes[position] - short)
        position += 1
        var length = first
        if first > 55 {
            // Records are far smaller than 65,536 bytes.
            guard first - 55 <= 2, first - 55 <= end - position else { throw .malformed }
            length = bytes[position..<position + first - 55].reduce(0) { $0 << 8 | Int($1) }
            position += first - 55
        }
        guard length <= end - position else { throw .malformed }
        defer { position += length }
        return position..<position + length
    }
}

enum RLP {
    static func list(_ content: some Collection<UInt8>) -> [UInt8] {
        header(0xC0, content.count) + content
    }

    static func string(_ bytes: some Collection<UInt8>) -> [UInt8] {
        if bytes.count == 1, let byte = bytes.first, byte < 0x80 { return [byte] }
        return header(0x80, bytes.count) + bytes
    }

    private static func header(_ short: UInt8, _ count: Int) -> [UInt8] {
        if count <= 55 { return [short + UInt8(count)] }
        return count < 256 ? [short + 56, UInt8(count)] : [short + 57, UInt8(count >> 8 & 255), UInt8(count & 255)]
    }
}
