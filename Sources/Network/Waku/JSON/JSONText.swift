import WakuCrypto

/// Writes JSON objects, member by member.
public struct JSONText: Sendable {
    public private(set) var bytes: [UInt8] = []
    private var isFirst = true

    public init() {}

    public mutating func beginObject() {
        bytes.append(UInt8(ascii: "{"))
        isFirst = true
    }

    public mutating func endObject() {
        bytes.append(UInt8(ascii: "}"))
        isFirst = false
    }

    public mutating func member(_ name: StaticString, _ text: String) {
        key(name)
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0..<0x20: bytes += Array("\\u00".utf8) + hexString([byte]).utf8
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    public mutating func member(_ name: StaticString, base64 data: [UInt8]) {
        key(name)
        bytes.append(UInt8(ascii: "\""))
        bytes += Base64.encode(data)
        bytes.append(UInt8(ascii: "\""))
    }

    /// - Parameters:
    ///   - name: The member's name.
    ///   - json: A value that is encoded already: a number, a Boolean or an object.
    public mutating func member(_ name: StaticString, json: some Sequence<UInt8>) {
        key(name)
        bytes += json
    }

    private mutating func key(_ name: StaticString) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes += $0 }
        bytes += [UInt8(ascii: "\""), UInt8(ascii: ":")]
    }
}
