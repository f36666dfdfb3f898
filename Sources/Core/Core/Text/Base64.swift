/// Base64, RFC 4648. The standard alphabet with padding, of which long texts are read and written, and the alphabet for URLs.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let pad = UInt8(ascii: "=")
    /// The value of a byte outside the alphabet.
    private static let invalid: UInt32 = 0xFF00_0000

    /// For each of the four positions in a group, the value of each byte shifted to its place in 24 bits.
    private static let values: [UInt32] = {
        var values = [UInt32](repeating: invalid, count: 4 * 256)
        for place in 0..<4 {
            for (value, byte) in alphabet.enumerated() {
                values[place * 256 + Int(byte)] = UInt32(value) << UInt32(18 - 6 * place)
            }
        }
        return values
    }()

    /// nil when any of it is not Base64.
    package static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        guard let last = text.last else { return [] }
        let padCount = last != pad ? 0 : text[text.count - 2] != pad ? 1 : 2
        let groupCount = text.count / 4
        let byteCount = groupCount * 3 - padCount
        var isValid = true
        let bytes = values.withUnsafeBufferPointer { values in
            [UInt8](unsafeUninitializedCapacity: groupCount * 3) { output, count in
                var seen: UInt32 = 0
                for group in 0..<groupCount - (padCount > 0 ? 1 : 0) {
                    let start = 4 * group
                    var word: UInt32 = values[Int(text[start])]
                    word |= values[256 + Int(text[start + 1])]
                    word |= values[512 + Int(text[start + 2])]
                    word |= values[768 + Int(text[start + 3])]
                    seen |= word
                    output[3 * group] = UInt8(truncatingIfNeeded: word >> 16)
                    output[3 * group + 1] = UInt8(truncatingIfNeeded: word >> 8)
                    output[3 * group + 2] = UInt8(truncatingIfNeeded: word)
                }
                if padCount > 0 {
                    let start = text.count - 4
                    var word: UInt32 = values[Int(text[start])]
                    word |= values[256 + Int(text[start + 1])]
                    if padCount == 1 { word |= values[512 + Int(text[start + 2])] }
                    seen |= word
                    output[byteCount - (2 - padCount) - 1] = UInt8(truncatingIfNeeded: word >> 16)
                    if padCount == 1 { output[byteCount - 1] = UInt8(truncatingIfNeeded: word >> 8) }
                }
                isValid = seen & invalid == 0
                count = byteCount
            }
        }
        return isValid ? bytes : nil
    }

    package static func encode(_ bytes: [UInt8]) -> [UInt8] {
        let wholeCount = bytes.count / 3
        let rest = bytes.count % 3
        return [UInt8](unsafeUninitializedCapacity: (wholeCount + 1) * 4) { text, count in
            alphabet.withUnsafeBufferPointer { alphabet in
                bytes.withUnsafeBufferPointer { bytes in
                    for group in 0..<wholeCount {
                        let word = UInt32(bytes[3 * group]) << 16 | UInt32(bytes[3 * group + 1]) << 8 | UInt32(bytes[3 * group + 2])
                        text[4 * group] = alphabet[Int(word >> 18)]
                        text[4 * group + 1] = alphabet[Int(word >> 12 & 63)]
                        text[4 * group + 2] = alphabet[Int(word >> 6 & 63)]
                        text[4 * group + 3] = alphabet[Int(word & 63)]
                    }
                    count = 4 * wholeCount
                    guard rest > 0 else { return }
                    let word = UInt32(bytes[3 * wholeCount]) << 16 | (rest == 2 ? UInt32(bytes[3 * wholeCount + 1]) << 8 : 0)
                    text[count] = alphabet[Int(word >> 18)]
                    text[count + 1] = alphabet[Int(word >> 12 & 63)]
                    text[count + 2] = rest == 2 ? alphabet[Int(word >> 6 & 63)] : pad
                    text[count + 3] = pad
                    count += 4
                }
            }
        }
    }

    /// The alphabet for URLs, with `-` and `_`, without padding. nil for other characters, or when the trailing bits are not zeros.
    package static func decodeURL(_ text: some Sequence<UInt8>) -> [UInt8]? {
        decodeDigits(text, bitCount: 6) { digit in
            switch digit {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
            case UInt8(ascii: "-"): 62
            case UInt8(ascii: "_"): 63
            default: nil
            }
        }
    }
}
