import WakuCrypto

/// Writes JSON objects, member by member, without white space. A nested object is written by another writer and passed to ``member(_:json:)``.
public struct JSONText: Sendable {
    /// The text so far, UTF-8.
    public private(set) var bytes: [UInt8] = []
    private var isFirst = true

    /// An empty text: start with ``beginObject()``.
    public init() {}

    /// Starts an object. The calls to ``member(_:_:)`` and its variants up to ``endObject()`` are its members.
    public mutating func beginObject() {
        bytes.append(UInt8(ascii: "{"))
        isFirst = true
    }

    /// Ends the object that was started last.
    public mutating func endObject() {
        bytes.append(UInt8(ascii: "}"))
        isFirst = false
    }

    /// Writes a string member, escaped where RFC 8259 requires it. The name is written as it is.
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

    /// Writes a string member with bytes in Base64, the standard alphabet with padding.
    public mutating func member(_ name: StaticString, base64 data: [UInt8]) {
        key(name)
        bytes.append(UInt8(ascii: "\""))
        bytes += Base64.encode(data)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes a member whose value is encoded already.
    ///
    /// - Parameters:
    ///   - name: The member's name, written as it is.
    ///   - json: A number, a Boolean or an object.
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
