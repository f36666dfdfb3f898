import WakuCrypto

/// Bytes stored as hexadecimal digits in JSON.
package struct Hex: Decodable, Hashable, Sendable {
    package let bytes: [UInt8]

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let digits = try container.decode(String.self)
        guard let bytes = WakuCrypto.bytes(hex: digits) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not hexadecimal: \(digits)")
        }
        self.bytes = bytes
    }
}

/// The bytes of a literal in hexadecimal digits; spaces and line ends are ignored.
///
/// - Precondition: pairs of digits.
package func hex(_ digits: String) -> [UInt8] {
    guard let bytes = WakuCrypto.bytes(hex: digits.filter { !$0.isWhitespace }) else { preconditionFailure("not hexadecimal: \(digits)") }
    return bytes
}
