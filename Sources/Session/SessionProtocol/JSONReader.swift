import WakuCrypto

/// The recursive-descent reader of ``JSONValue``. Never reads past the end; ``JSONValue/maximumDepth`` bounds its recursion.
struct JSONReader {
    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }
    private var failure: JSONValue.SyntaxError { .init(offset: offset) }

    /// Reads a value that is surrounded only by white space.
    mutating func document() throws(JSONValue.SyntaxError) -> JSONValue {
        let value = try value(depth: 0)
        skipSpace()
        guard next == nil else { throw failure }
        return value
    }

    private mutating func value(depth: Int) throws(JSONValue.SyntaxError) -> JSONValue {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return .object(try object(depth: depth + 1))
        case UInt8(ascii: "["): return .array(try array(depth: depth + 1))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func object(depth: Int) throws(JSONValue.SyntaxError) -> JSONObject {
        guard depth <= JSONValue.maximumDepth else { throw failure }
        offset += 1
        var object = JSONObject(members: [])
        skipSpace()
        if take("}") { return object }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw failure }
            let name = try string()
            skipSpace()
            guard take(":") else { throw failure }
            object.members.append((name, try value(depth: depth)))
            skipSpace()
            if take("}") { return object }
            guard take(",") else { throw failure }
        }
    }

    private mutating func array(depth: Int) throws(JSONValue.SyntaxError) -> [JSONValue] {
        guard depth <= JSONValue.maximumDepth else { throw failure }
        offset += 1
        var array: [JSONValue] = []
        skipSpace()
        if take("]") { return array }
        while true {
            array.append(try value(depth: depth))
            skipSpace()
            if take("]") { return array }
            guard take(",") else { throw failure }
        }
    }

    /// `-? (0 | 1–9 digits*) (. digits+)? ((e|E) (+|-)? digits+)?`
    private mutating func number() throws(JSONValue.SyntaxError) -> ArraySlice<UInt8> {
        let start = offset
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            _ = take("+") || take("-")
            try digits()
        }
        return bytes[start..<offset]
    }

    /// Reads one or more digits.
    private mutating func digits() throws(JSONValue.SyntaxError) {
        guard let first = next, isDigit(first) else { throw failure }
        while let byte = next, isDigit(byte) { offset += 1 }
    }

    private mutating func string() throws(JSONValue.SyntaxError) -> String {
        offset += 1
        let start = offset
        var isASCII = true
        while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 {
            isASCII = isASCII && byte < 0x80
            offset += 1
        }
        // The common case. Validating UTF-8 costs several times as much.
        if isASCII, next == UInt8(ascii: "\"") {
            defer { offset += 1 }
            return bytes.withUnsafeBufferPointer { String(decoding: UnsafeBufferPointer(rebasing: $0[start..<offset]), as: UTF8.self) }
        }
        var content = Array(bytes[start..<offset])
        while !take("\"") {
            guard let byte = next, byte >= 0x20 else { throw failure }
            if byte == UInt8(ascii: "\\") {
                try escape(into: &content)
            } else {
                content.append(byte)
                offset += 1
            }
        }
        guard let text = String(validating: content, as: UTF8.self) else { throw failure }
        return text
    }

    private mutating func escape(into content: inout [UInt8]) throws(JSONValue.SyntaxError) {
        offset += 1
        guard let byte = next else { throw failure }
        offset += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(byte)
        case UInt8(ascii: "b"): content.append(0x08)
        case UInt8(ascii: "f"): content.append(0x0C)
        case UInt8(ascii: "n"): content.append(0x0A)
        case UInt8(ascii: "r"): content.append(0x0D)
        case UInt8(ascii: "t"): content.append(0x09)
        case UInt8(ascii: "u"):
            let scalar = try scalar()
            content += Array(String(Character(scalar)).utf8)
        default: throw failure
        }
    }

    /// Reads a `\u` escape of four hexadecimal digits, or two that form a surrogate pair.
    private mutating func scalar() throws(JSONValue.SyntaxError) -> Unicode.Scalar {
        let first = try codeUnit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard 0xD800..<0xDC00 ~= first, take("\\"), take("u") else { throw failure }
        let second = try codeUnit()
        guard 0xDC00..<0xE000 ~= second,
            let scalar = Unicode.Scalar(0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00))
        else { throw failure }
        return scalar
    }

    private mutating func codeUnit() throws(JSONValue.SyntaxError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = next.flatMap(hexNibble) else { throw failure }
            unit = unit << 4 | UInt16(digit)
            offset += 1
        }
        return unit
    }

    private mutating func literal(_ word: StaticString, _ value: JSONValue) throws(JSONValue.SyntaxError) -> JSONValue {
        let length = word.utf8CodeUnitCount
        let isThere = word.withUTF8Buffer { offset + length <= bytes.count && bytes[offset..<offset + length].elementsEqual($0) }
        guard isThere else { throw failure }
        offset += length
        return value
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        offset += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { offset += 1 }
    }
}
