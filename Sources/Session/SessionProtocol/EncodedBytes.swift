import Foundation
import WakuCrypto

/// Bytes in JSON: hexadecimal digits of either case, or base64 with or without padding, distinguished by length.
enum EncodedBytes {
    /// nil unless the text encodes exactly `count` bytes. Base64 with non-zero unused bits in its last digit is refused.
    ///
    /// - Precondition: `count` is at least 2, so that the lengths of both forms differ.
    static func decode(_ text: String, count: Int) -> [UInt8]? {
        let length = text.utf8.count
        if length == 2 * count { return bytes(hex: text) }
        let digits = (4 * count + 2) / 3
        let padded = (count + 2) / 3 * 4
        guard length == digits || length == padded else { return nil }
        let whole = text + String(repeating: "=", count: padded - length)
        guard let data = Data(base64Encoded: whole), data.count == count, data.base64EncodedString() == whole else { return nil }
        return Array(data)
    }
}
