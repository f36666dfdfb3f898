/// Base32, RFC 4648, without padding.
package enum Base32 {
    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// In lower case: multibase `b`.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        encodeDigits(bytes, bitCount: 5, alphabet: alphabet)
    }

    /// nil for other characters, or when the trailing bits are not zeros or as many as a digit.
    ///
    /// - Parameters:
    ///   - text: Digits in lower case.
    ///   - acceptsUpperCase: Whether digits may be in upper case as well.
    package static func decode(_ text: some StringProtocol, acceptsUpperCase: Bool = false) -> [UInt8]? {
        decodeDigits(text.utf8, bitCount: 5) { digit in
            switch digit {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a")
            case UInt8(ascii: "A")...UInt8(ascii: "Z") where acceptsUpperCase: digit - UInt8(ascii: "A")
            case UInt8(ascii: "2")...UInt8(ascii: "7"): digit - UInt8(ascii: "2") + 26
            default: nil
            }
        }
    }
}

/// Writes digits of `bitCount` bits each, the last one filled with zeros, without padding.
func encodeDigits(_ bytes: some Sequence<UInt8>, bitCount: Int, alphabet: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.underestimatedCount * 8 + bitCount - 1) / bitCount)
    var bits = 0
    var held: UInt32 = 0
    for byte in bytes {
        held = held << 8 | UInt32(byte)
        bits += 8
        while bits >= bitCount {
            bits -= bitCount
            text.append(alphabet[Int(held >> UInt32(bits)) & (alphabet.count - 1)])
        }
    }
    if bits > 0 { text.append(alphabet[Int(held << UInt32(bitCount - bits)) & (alphabet.count - 1)]) }
    return String(decoding: text, as: UTF8.self)
}

/// Joins digits of `bitCount` bits each, without padding. nil for other characters, or when the trailing bits are not zeros or as many as a digit.
func decodeDigits(_ text: some Sequence<UInt8>, bitCount: Int, value: (UInt8) -> UInt8?) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.underestimatedCount * bitCount / 8)
    var bits = 0
    var held: UInt32 = 0
    for digit in text {
        guard let value = value(digit) else { return nil }
        held = held << UInt32(bitCount) | UInt32(value)
        bits += bitCount
        if bits >= 8 {
            bits -= 8
            bytes.append(UInt8(truncatingIfNeeded: held >> UInt32(bits)))
            held &= 1 << UInt32(bits) - 1
        }
    }
    return bits < bitCount && held == 0 ? bytes : nil
}
