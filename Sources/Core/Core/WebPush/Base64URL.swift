/// Base64 with `-` and `_`, RFC 4648 section 5: written without padding, read with or without it.
public enum Base64URL {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Without padding.
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var (pending, bitCount) = (0, 0)
        for byte in bytes {
            pending = pending << 8 | Int(byte)
            bitCount += 8
            while bitCount >= 6 {
                bitCount -= 6
                text.append(digits[pending >> bitCount & 63])
            }
            pending &= (1 << bitCount) - 1
        }
        if bitCount > 0 { text.append(digits[pending << (6 - bitCount) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// nil for other characters, padding that does not fill the last group, an impossible length, and leftover bits that are not zero.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var digits = Array(text.utf8)
        let paddingCount = digits.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard paddingCount == 0 || paddingCount <= 2 && digits.count.isMultiple(of: 4) else { return nil }
        digits.removeLast(paddingCount)
        guard digits.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var (pending, bitCount) = (0, 0)
        for digit in digits {
            guard let value = value(of: digit) else { return nil }
            pending = pending << 6 | value
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                bytes.append(UInt8(pending >> bitCount))
                pending &= (1 << bitCount) - 1
            }
        }
        return pending == 0 ? bytes : nil
    }

    private static func value(of digit: UInt8) -> Int? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
