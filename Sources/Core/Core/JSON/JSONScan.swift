import Foundation

// Public although only this package uses it: see ProtobufReader.

/// Scans JSON text for the positions of values, without building a tree. It never reads outside the text and takes linear time. `JSONValue` is
/// the tree of a strictly valid text.
///
/// It validates only what it needs: skipped values and the contents of strings may violate RFC 8259 in ways that do not affect where they
/// end. All methods return nil or false when the text is not what they expect; scanning must then stop.
public struct JSONScan {
    /// The characters between the quotes.
    public struct StringRange {
        public let range: Range<Int>
        public let isEscaped: Bool

        @usableFromInline
        init(range: Range<Int>, isEscaped: Bool) {
            self.range = range
            self.isEscaped = isEscaped
        }
    }

    package static let depthLimit = 512
    /// The longest value that can be skipped, in bytes: skipping millions of nested values would take seconds.
    package static let skippedByteLimit = 256 << 10

    public let text: UnsafeBufferPointer<UInt8>
    @usableFromInline var position = 0

    @inlinable
    public init(_ text: UnsafeBufferPointer<UInt8>) {
        self.text = text
    }

    /// The next byte that is not white space; nil at the end.
    @inlinable
    public mutating func peek() -> UInt8? {
        while position < text.count {
            switch text[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            case let byte: return byte
            }
        }
        return nil
    }

    @inlinable
    public mutating func take(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        position += 1
        return true
    }

    public mutating func string() -> StringRange? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        let start = position
        guard var end = index(of: UInt8(ascii: "\""), in: start..<text.count) else { return nil }
        guard let escape = index(of: UInt8(ascii: "\\"), in: start..<end) else {
            position = end + 1
            return StringRange(range: start..<end, isEscaped: false)
        }
        end = escape
        while end < text.count {
            switch text[end] {
            case UInt8(ascii: "\""):
                position = end + 1
                return StringRange(range: start..<end, isEscaped: true)
            case UInt8(ascii: "\\"): end += 2
            default: end += 1
            }
        }
        return nil
    }

    /// The range of a number, `true`, `false` or `null`.
    @inlinable
    public mutating func word() -> Range<Int>? {
        guard peek() != nil else { return nil }
        let start = position
        while position < text.count, Self.isWordByte(text[position]) { position += 1 }
        return start < position ? start..<position : nil
    }

    @inlinable
    static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// Skips any value of at most `skippedByteLimit` bytes.
    public mutating func skipValue() -> Bool {
        var depth = 0
        let start = position
        repeat {
            guard let byte = peek(), position - start <= Self.skippedByteLimit else { return false }
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                guard depth <= Self.depthLimit else { return false }
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard depth > 0 else { return false }
                depth -= 1
                position += 1
            case UInt8(ascii: ","), UInt8(ascii: ":"):
                guard depth > 0 else { return false }
                position += 1
            case UInt8(ascii: "\""):
                guard string() != nil else { return false }
            default:
                guard word() != nil else { return false }
            }
        } while depth > 0
        return true
    }

    /// Scans the members of an object. `member` must read or skip the value after each key; returning false ends the scan.
    @inlinable
    public mutating func object(_ member: (StringRange, inout JSONScan) -> Bool) -> Bool {
        guard take(UInt8(ascii: "{")) else { return false }
        if take(UInt8(ascii: "}")) { return true }
        repeat {
            guard let key = string(), take(UInt8(ascii: ":")), member(key, &self) else { return false }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}"))
    }

    /// Scans the elements of an array. `element` must read or skip the value; returning false ends the scan.
    @inlinable
    public mutating func array(_ element: (inout JSONScan) -> Bool) -> Bool {
        guard take(UInt8(ascii: "[")) else { return false }
        if take(UInt8(ascii: "]")) { return true }
        repeat {
            guard element(&self) else { return false }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]"))
    }

    /// Whether the next value is `null`, which is then skipped.
    public mutating func takeNull() -> Bool {
        word().map { isWord($0, "null") } ?? false
    }

    /// The bytes of a string, or nil for `null`; the outer nil for anything else.
    public mutating func optionalText() -> [UInt8]?? {
        guard peek() == UInt8(ascii: "\"") else {
            return takeNull() ? .some(nil) : nil
        }
        guard let string = string(), let bytes = bytes(string) else { return nil }
        return .some(bytes)
    }

    private func index(of byte: UInt8, in range: Range<Int>) -> Int? {
        guard !range.isEmpty, let base = text.baseAddress, let found = memchr(base + range.lowerBound, Int32(byte), range.count) else {
            return nil
        }
        return UnsafeRawPointer(base).distance(to: UnsafeRawPointer(found))
    }

    // MARK: Values

    /// The bytes of a string with escapes resolved.
    public func bytes(_ string: StringRange) -> [UInt8]? {
        string.isEscaped ? unescaped(string.range) : Array(text[string.range])
    }

    /// The index of the name that a string equals.
    public func string(_ string: StringRange, among names: [StaticString]) -> Int? {
        guard string.isEscaped else {
            let name = UnsafeBufferPointer(rebasing: text[string.range])
            return names.firstIndex { isEqual(name, $0) }
        }
        return unescaped(string.range)?.withUnsafeBufferPointer { name in names.firstIndex { isEqual(name, $0) } }
    }

    private func unescaped(_ range: Range<Int>) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(range.count)
        var index = range.lowerBound
        while index < range.upperBound {
            guard text[index] == UInt8(ascii: "\\") else {
                result.append(text[index])
                index += 1
                continue
            }
            guard index + 1 < range.upperBound else { return nil }
            index += 2
            switch text[index - 1] {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): result.append(text[index - 1])
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0C)
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "u"):
                guard let scalar = scalar(at: &index, before: range.upperBound) else { return nil }
                result += Array(String(Character(scalar)).utf8)
            default: return nil
            }
        }
        return result
    }

    /// The scalar of `XXXX`, or of the surrogate pair `XXXX\uXXXX`.
    private func scalar(at index: inout Int, before end: Int) -> Unicode.Scalar? {
        guard let high = unit(at: index, before: end) else { return nil }
        index += 4
        guard high & 0xFC00 == 0xD800 else { return Unicode.Scalar(high) }
        guard index + 2 <= end, text[index] == UInt8(ascii: "\\"), text[index + 1] == UInt8(ascii: "u"),
            let low = unit(at: index + 2, before: end), low & 0xFC00 == 0xDC00
        else { return nil }
        index += 6
        return Unicode.Scalar(0x10000 + (high & 0x3FF) << 10 + low & 0x3FF)
    }

    private func unit(at index: Int, before end: Int) -> UInt32? {
        guard index + 4 <= end else { return nil }
        var value: UInt32 = 0
        for byte in text[index..<index + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    /// The exact value; nil beyond 64 bits. `1e3` and `1.0` are integers too.
    public func integer(_ word: Range<Int>) -> Int64? {
        let isNegative = text[word.lowerBound] == UInt8(ascii: "-")
        let digits = text[(isNegative ? word.lowerBound + 1 : word.lowerBound)..<word.upperBound]
        var value: Int64 = 0
        for byte in digits {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else {
                guard byte == UInt8(ascii: ".") || byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") else { return nil }
                return Double(String(decoding: text[word], as: UTF8.self)).flatMap(Int64.init(exactly:))
            }
            let (product, isOver) = value.multipliedReportingOverflow(by: 10)
            let digit = Int64(byte - UInt8(ascii: "0"))
            // Negative numbers are accumulated downwards: their range is larger by one.
            let (sum, isBeyond) = product.addingReportingOverflow(isNegative ? -digit : digit)
            guard !isOver, !isBeyond else { return nil }
            value = sum
        }
        return digits.isEmpty ? nil : value
    }

    public func isWord(_ word: Range<Int>, _ expected: StaticString) -> Bool {
        isEqual(UnsafeBufferPointer(rebasing: text[word]), expected)
    }
}

/// Compares without creating a String: called for every member of every message.
public func isEqual(_ text: UnsafeBufferPointer<UInt8>, _ expected: StaticString) -> Bool {
    guard text.count == expected.utf8CodeUnitCount, let base = text.baseAddress else { return false }
    return memcmp(base, expected.utf8Start, text.count) == 0
}
