/// JSON, strictly by RFC 8259. Nesting deeper than 64 levels is refused.
///
/// Numbers are kept as text, so that an error can name `sig_ts` if it has a fraction or 400 digits. Foundation's parser reads them as
/// floating-point numbers, or refuses the whole text.
package enum JSONValue: Sendable {
    case null
    case bool(Bool)
    /// The number as text.
    case number(ArraySlice<UInt8>)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)

    static let maximumDepth = 64

    /// The text is not JSON.
    package struct SyntaxError: Error, Hashable, Sendable {}

    package init(parsing bytes: some Collection<UInt8>) throws(SyntaxError) {
        let bytes = Array(bytes)
        let value = bytes.withUnsafeBufferPointer { text in
            var scan = JSONScan(text)
            return Self.value(&scan, bytes, depth: 0).flatMap { scan.peek() == nil ? $0 : nil }
        }
        guard let value else { throw SyntaxError() }
        self = value
    }

    package var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    package var flag: Bool? {
        guard case .bool(let flag) = self else { return nil }
        return flag
    }

    package var array: [JSONValue]? {
        guard case .array(let array) = self else { return nil }
        return array
    }

    package var object: JSONObject? {
        guard case .object(let object) = self else { return nil }
        return object
    }

    /// A number without fraction and exponent that fits into 64 bits.
    package var integer: Int64? { digits.flatMap { Int64($0) } }
    /// A number without sign, fraction and exponent that fits into 64 bits.
    package var unsignedInteger: UInt64? { digits.flatMap { UInt64($0) } }

    private var digits: String? {
        guard case .number(let written) = self, written.count <= 20,
            written.allSatisfy({ $0 == UInt8(ascii: "-") || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { return nil }
        return String(decoding: written, as: UTF8.self)
    }
}

/// The members of a JSON object. If several have the same name, the last one counts.
package struct JSONObject: Sendable {
    fileprivate var members: [(name: String, value: JSONValue)] = []

    /// nil if the member is missing or null.
    package subscript(name: StaticString) -> JSONValue? {
        let name = "\(name)"
        guard let member = members.last(where: { $0.name == name }) else { return nil }
        if case .null = member.value { return nil }
        return member.value
    }
}

// MARK: - Reading

extension JSONValue {
    /// - Parameters:
    ///   - scan: At the value, or at white space before it.
    ///   - bytes: The text that is scanned.
    ///   - depth: The number of arrays and objects around the value.
    /// - Returns: nil unless the value is valid.
    private static func value(_ scan: inout JSONScan, _ bytes: [UInt8], depth: Int) -> JSONValue? {
        switch scan.peek() {
        case UInt8(ascii: "{"):
            var object = JSONObject()
            let isRead =
                depth < maximumDepth
                && scan.object { key, scan in
                    guard let name = string(key, scan), let value = value(&scan, bytes, depth: depth + 1) else { return false }
                    object.members.append((name, value))
                    return true
                }
            return isRead ? .object(object) : nil
        case UInt8(ascii: "["):
            var array: [JSONValue] = []
            let isRead =
                depth < maximumDepth
                && scan.array { scan in
                    guard let value = value(&scan, bytes, depth: depth + 1) else { return false }
                    array.append(value)
                    return true
                }
            return isRead ? .array(array) : nil
        case UInt8(ascii: "\""):
            return scan.string().flatMap { string($0, scan) }.map(JSONValue.string)
        default:
            guard let word = scan.word() else { return nil }
            if scan.isWord(word, "true") { return .bool(true) }
            if scan.isWord(word, "false") { return .bool(false) }
            if scan.isWord(word, "null") { return .null }
            return isNumber(bytes[word]) ? .number(bytes[word]) : nil
        }
    }

    /// nil for invalid escapes and UTF-8, and for control characters, which must be escaped.
    private static func string(_ string: JSONScan.StringRange, _ scan: JSONScan) -> String? {
        let raw = UnsafeBufferPointer(rebasing: scan.text[string.range])
        var isASCII = true
        for byte in raw {
            guard byte >= 0x20 else { return nil }
            isASCII = isASCII && byte < 0x80
        }
        guard !string.isEscaped else { return scan.bytes(string).flatMap { String(validating: $0, as: UTF8.self) } }
        // The common case. Validating UTF-8 costs several times as much.
        return isASCII ? String(decoding: raw, as: UTF8.self) : String(validating: raw, as: UTF8.self)
    }

    /// `-? (0 | 1–9 digits*) (. digits+)? ((e|E) (+|-)? digits+)?`
    private static func isNumber(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        func take(_ characters: String) -> Bool {
            guard let first = rest.first, characters.utf8.contains(first) else { return false }
            rest = rest.dropFirst()
            return true
        }
        func takeDigits() -> Bool {
            let digits = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
            rest = rest[digits.endIndex...]
            return !digits.isEmpty
        }
        _ = take("-")
        guard take("0") || takeDigits() else { return false }
        if take("."), !takeDigits() { return false }
        if take("eE") {
            _ = take("+-")
            guard takeDigits() else { return false }
        }
        return rest.isEmpty
    }
}
