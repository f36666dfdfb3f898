/// A JSON string literal with its quotes.
func jsonText(_ text: String) -> String {
    let (quote, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
    guard text.utf8.contains(where: { $0 < 0x20 || $0 == quote || $0 == backslash }) else { return "\"" + text + "\"" }
    var bytes = [quote]
    bytes.reserveCapacity(text.utf8.count + 2)
    // Works on bytes, because only ASCII characters are escaped.
    for byte in text.utf8 {
        switch byte {
        case quote, backslash: bytes += [backslash, byte]
        case 0..<0x20:
            let digits = String(byte, radix: 16)
            bytes += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8
        default: bytes.append(byte)
        }
    }
    bytes.append(quote)
    return String(decoding: bytes, as: UTF8.self)
}
