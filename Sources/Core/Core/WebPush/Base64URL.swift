/// Base64 with `-` and `_`, RFC 4648 section 5: written without padding, read with or without it.
public enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Without padding.
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        encodeDigits(bytes, bitCount: 6, alphabet: alphabet)
    }

    /// nil for other characters, padding that does not fill the last group, an impossible length, and leftover bits that are not zero.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let paddingCount = text.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard paddingCount == 0 || paddingCount <= 2 && text.utf8.count.isMultiple(of: 4) else { return nil }
        return Base64.decodeURL(text.utf8.dropLast(paddingCount))
    }
}
