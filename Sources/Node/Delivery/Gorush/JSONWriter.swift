/// Writes JSON in UTF-8 without whitespace. Inserts commas and escapes; the caller provides a valid structure.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init(capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    package mutating func object(_ name: StaticString? = nil, _ body: (inout JSONWriter) -> Void) {
        nest(name, UInt8(ascii: "{"), UInt8(ascii: "}"), body)
    }

    package mutating func array(_ name: StaticString, _ body: (inout JSONWriter) -> Void) {
        nest(name, UInt8(ascii: "["), UInt8(ascii: "]"), body)
    }

    package mutating func value(_ name: StaticString, _ text: String) {
        begin(name)
        write(text)
    }

    /// Writes an element of an array, or the value of a ``member(_:_:)``.
    package mutating func element(_ text: String) {
        begin(nil)
        write(text)
    }

    package mutating func value(_ name: StaticString, _ number: some BinaryInteger) {
        begin(name)
        bytes += String(number).utf8
    }

    package mutating func value(_ name: StaticString, _ flag: Bool) {
        begin(name)
        bytes += (flag ? "true" : "false").utf8
    }

    /// Writes a member whose name is a value. Names are ASCII without quotes and backslashes.
    package mutating func member(_ name: String, _ write: (inout JSONWriter) -> Void) {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        bytes += name.utf8
        bytes += "\":".utf8
        needsComma = false
        write(&self)
        needsComma = true
    }

    package mutating func element(_ number: some BinaryInteger) {
        begin(nil)
        bytes += String(number).utf8
    }

    package mutating func element(_ flag: Bool) {
        begin(nil)
        bytes += (flag ? "true" : "false").utf8
    }

    /// Writes a string of `0x` and lowercase hexadecimal digits.
    package mutating func value(_ name: StaticString, hex content: [UInt8]) {
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
