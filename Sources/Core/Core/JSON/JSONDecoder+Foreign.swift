import Foundation

extension JSONDecoder {
    /// Limit of the characters of a number. Foundation's decoder of Swift 6.3 ends the process at a number that is whole and in range but has an
    /// exponent and over a hundred digits, such as 1, 300 zeros and e-284, where it decodes `Int`, `Int64` or `UInt64` (swift-foundation issue 812).
    private static let numberLimit = 64

    /// Decodes JSON from outside of the process, in UTF-8.
    ///
    /// - Throws: `DecodingError`, also for numbers of more than 64 characters.
    package static func decode<Value: Decodable>(_ type: Value.Type, fromForeign json: some Collection<UInt8>) throws -> Value {
        guard hasShortNumbers(json) else {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "a number is too long, or the text is not UTF-8"))
        }
        return try JSONDecoder().decode(type, from: Data(json))
    }

    /// Whether no number is longer than the limit. Other encodings, which the decoder recognizes, have zero bytes.
    private static func hasShortNumbers(_ json: some Collection<UInt8>) -> Bool {
        var (characterCount, isString, isEscaped) = (0, false, false)
        for byte in json {
            guard byte != 0 else { return false }
            if isString {
                isString = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                continue
            }
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "e"),
                UInt8(ascii: "E"):
                characterCount += 1
                guard characterCount <= numberLimit else { return false }
            default:
                characterCount = 0
                isString = byte == UInt8(ascii: "\"")
            }
        }
        return true
    }
}
