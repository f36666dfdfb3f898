/// The encodings of DNS node lists, RFC 4648: base32 with A–Z and 2–7, base64 with `-` and `_`, both without padding. nil for other characters,
/// or when the trailing bits are not zero.
enum BaseEncoding {
    static func base32(_ text: some StringProtocol) -> [UInt8]? {
        decode(text, bitCount: 5) { character in
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a")
            case UInt8(ascii: "2")...UInt8(ascii: "7"): character - UInt8(ascii: "2") + 26
            default: nil
            }
        }
    }

    static func base64URL(_ text: some StringProtocol) -> [UInt8]? {
        decode(text, bitCount: 6) { character in
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
            case UInt8(ascii: "-"): 62
            case UInt8(ascii: "_"): 63
            default: nil
            }
        }
    }

    private static func decode(_ text: some StringProtocol, bitCount: Int, value: (UInt8) -> UInt8?) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits = 0
        var buffer: UInt32 = 0
        for character in text.utf8 {
            guard let value = value(character) else { return nil }
            buffer = buffer << UInt32(bitCount) | UInt32(value)
            bits += bitCount
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
                buffer &= (1 << UInt32(bits)) - 1
            }
        }
        // The remaining bits are less than a byte, and must be less than a character.
        return bits < bitCount && buffer == 0 ? bytes : nil
    }
}
