package import WakuCrypto

extension PrivateKey {
    /// A key as hexadecimal digits, with or without 0x, as go-ethereum's key files have it.
    package init?(hexText text: String) {
        let digits = text.hasPrefix("0x") ? String(text.dropFirst(2)) : text
        guard digits.utf8.count == 2 * PrivateKey.byteCount, let bytes = bytes(hex: digits), let key = try? PrivateKey(bytes: bytes) else {
            return nil
        }
        self = key
    }
}
