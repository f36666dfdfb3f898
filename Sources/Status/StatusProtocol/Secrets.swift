import WakuCrypto
public import Core

/// The secret that a sender needs to notify a registrant. A UUID in one of the forms of ``isUUID``, stored as received.
public struct AccessToken: SecretText {
    /// UTF-8 as received: not necessarily a UUID.
    public let bytes: [UInt8]
    /// - Parameter bytes: Any text. Check ``isUUID`` before it is stored.
    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// 8-4-4-4-12 hexadecimal digits, alone, in braces or after `urn:uuid:`; or 32 digits. Any case.
    public var isUUID: Bool {
        var digits = bytes[...]
        switch digits.count {
        case 32: return digits.allSatisfy { hexNibble($0) != nil }
        case 36: break
        case 38:
            guard digits.first == UInt8(ascii: "{"), digits.last == UInt8(ascii: "}") else { return false }
            digits = digits.dropFirst().dropLast()
        case 45:
            let isPrefix = zip(digits, "urn:uuid:".utf8).allSatisfy { Self.lowercased($0) == $1 }
            guard isPrefix else { return false }
            digits = digits.dropFirst(9)
        default: return false
        }
        let hyphens = [8, 13, 18, 23]
        return digits.enumerated().allSatisfy { offset, byte in
            hyphens.contains(offset) ? byte == UInt8(ascii: "-") : hexNibble(byte) != nil
        }
    }

    /// In ASCII.
    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
