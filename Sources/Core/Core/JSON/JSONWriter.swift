// Public although only this package uses it: see ProtobufReader.

/// Writes JSON in UTF-8 without whitespace. Inserts commas and escapes; the caller provides a valid structure.
public struct JSONWriter: Sendable {
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false

    /// - Parameter capacity: The expected length in bytes.
    public init(capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
    }

    /// Writes an object; the name is nil in arrays and at the top.
    public mutating func object(_ name: StaticString? = nil, _ body: (inout JSONWriter) -> Void) {
        nest(name, UInt8(ascii: "{"), UInt8(ascii: "}"), body)
    }

    /// Writes an array; the name is nil in arrays and at the top.
    public mutating func array(_ name: StaticString? = nil, _ body: (inout JSONWriter) -> Void) {
        nest(name, UInt8(ascii: "["), UInt8(ascii: "]"), body)
    }

    /// Writes a string, escaped.
    public mutating func value(_ name: StaticString, _ text: String) {
        begin(name)
        write(text)
    }

    /// Writes a string in an array, escaped.
    public mutating func element(_ text: String) {
        begin(nil)
        write(text)
    }

    /// Writes a number.
    @inlinable
    public mutating func value(_ name: StaticString, _ number: some BinaryInteger) {
        value(name, digits: String(number))
    }

    @usableFromInline
    mutating func value(_ name: StaticString, digits: String) {
        begin(name)
        bytes += digits.utf8
    }

    /// Writes a value that is encoded already.
    public mutating func value(_ name: StaticString, json: [UInt8]) {
        begin(name)
        bytes += json
    }

    /// Writes bytes as base64.
    public mutating func value(_ name: StaticString, base64 content: [UInt8]) {
        begin(name)
        bytes.append(UInt8(ascii: "\""))
        bytes += Base64.encode(content)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes true or false.
    public mutating func value(_ name: StaticString, _ flag: Bool) {
        begin(name)
        bytes += (flag ? "true" : "false").utf8
    }

    /// Writes a string of `0x` and lowercase hexadecimal digits.
    public mutating func value(_ name: StaticString, hex content: [UInt8]) {
        begin(name)
        bytes += "\"0x".utf8
        for byte in content {
            bytes.append(Self.digits[Int(byte >> 4)])
            bytes.append(Self.digits[Int(byte & 15)])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func nest(_ name: StaticString?, _ open: UInt8, _ close: UInt8, _ body: (inout JSONWriter) -> Void) {
        begin(name)
        bytes.append(open)
        needsComma = false
        body(&self)
        bytes.append(close)
        needsComma = true
    }

    /// - Parameter name: the member's name; nil in an array.
    private mutating func begin(_ name: StaticString?) {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
        guard let name else { return }
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes += $0 }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func write(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20:
                bytes += "\\u00".utf8
                bytes.append(Self.digits[Int(byte >> 4)])
                bytes.append(Self.digits[Int(byte & 15)])
            default:
                bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static let digits = Array("0123456789abcdef".utf8)
}

/// A string as JSON, in quotes.
package func jsonText(_ text: String) -> String {
    guard text.utf8.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else {
        return "\"" + text + "\""
    }
    var writer = JSONWriter(capacity: text.utf8.count + 8)
    writer.element(text)
    return String(decoding: writer.bytes, as: UTF8.self)
}
